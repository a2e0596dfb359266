/** Finds the name of a contact in its properties. Pure. */

/** Properties with names. Lists and forms show them first, in this order. */
const NAMES = ['name', 'first_name', 'firstname', 'given_name', 'last_name', 'lastname', 'family_name']

const plain = (property: string): string => property.toLowerCase().replace(/[\s-]+/g, '_')

/** Compares properties for sorting: names first, the others alphabetically. */
export function compareProperties(one: string, other: string): number {
  const rank = (property: string): number => {
    const place = NAMES.indexOf(plain(property))
    return place === -1 ? NAMES.length : place
  }
  return rank(one) - rank(other) || one.localeCompare(other, 'en')
}

/** True if all contacts with this property have its value in their name. */
export const isInName = (
  contacts: readonly { properties: Readonly<Record<string, string>> }[],
  property: string,
) =>
  NAMES.includes(plain(property)) &&
  contacts.every(({ properties }) => {
    const value = Object.hasOwn(properties, property) ? (properties[property] ?? '') : ''
    return (findName(properties) ?? '').includes(value.trim())
  })

export function findName(properties: Readonly<Record<string, string>>): string | null {
  const given = new Map(
    Object.entries(properties).map(([property, value]) => [plain(property), value.trim()]),
  )
  const part = (...names: string[]): string => names.map((name) => given.get(name) ?? '').find(Boolean) ?? ''
  const first = part('first_name', 'firstname', 'given_name')
  const last = part('last_name', 'lastname', 'family_name')
  return part('name') || [first, last].filter(Boolean).join(' ') || null
}
