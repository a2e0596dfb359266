/** How a contact is called, by the properties that usually say so. Pure. */

/** The properties that name somebody, as lists and forms have them: before all others. */
const NAMES = ['name', 'first_name', 'firstname', 'given_name', 'last_name', 'lastname', 'family_name']

/** A property's name without what people write in different ways. */
const plain = (property: string): string => property.toLowerCase().replace(/[\s-]+/g, '_')

/** Orders properties: those that name somebody first, all others by their names. */
export function compareProperties(one: string, other: string): number {
  const rank = (property: string): number => {
    const place = NAMES.indexOf(plain(property))
    return place === -1 ? NAMES.length : place
  }
  return rank(one) - rank(other) || one.localeCompare(other, 'en')
}

/** The name of a contact; null where no property says it. */
export function nameOf(properties: Readonly<Record<string, string>>): string | null {
  const given = new Map(
    Object.entries(properties).map(([property, value]) => [plain(property), value.trim()]),
  )
  const part = (...names: string[]): string => names.map((name) => given.get(name) ?? '').find(Boolean) ?? ''
  const first = part('first_name', 'firstname', 'given_name')
  const last = part('last_name', 'lastname', 'family_name')
  return part('name') || [first, last].filter(Boolean).join(' ') || null
}
