/**
 * Formats DNS records: the host for DNS panels, and how a published record differs from the required one.
 * Pure.
 */

/**
 * Returns the host for DNS panels: the part before the zone, or `@` for the zone itself. If the zone is
 * unknown, it is the full name.
 */
export function hostIn(zone: string | null, name: string): string {
  if (zone === null) return name
  if (name === zone) return '@'
  return name.endsWith(`.${zone}`) ? name.slice(0, -zone.length - 1) : name
}

const bare = (text: string): string => text.replace(/\s+/g, '')

/** Returns the length of the common prefix. */
function alike(one: string, other: string): number {
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  return at
}

function describeMismatch(wanted: string, found: string): string {
  const [needed, has] = [bare(wanted), bare(found)]
  if (has.replace(/["\\]/g, '') === needed) return 'contains stray quotation marks or backslashes'
  if (/(^|;)p=(;|$)/.test(has)) return 'a revoked key: p= is empty'
  if (needed.startsWith(has)) return `cut short: ${found.length} of ${wanted.length} characters`
  if (has.startsWith(needed)) return `too long: ${found.length} instead of ${wanted.length} characters`
  return /(^|;)p=/.test(has) ? 'a different key' : ''
}

/** Returns the published value with the longest common prefix. */
const nearestTo = (value: string, published: readonly string[]): string =>
  [...published].sort((a, b) => alike(bare(b), bare(value)) - alike(bare(a), bare(value)))[0] ?? ''

/**
 * Splits a required value into the published part and the missing rest, if the published one was cut short.
 */
export function cutValue(value: string, published: readonly string[]): { present: string; missing: string } {
  const has = bare(nearestTo(value, published)).length
  const isCut =
    has > 0 && bare(value).startsWith(bare(nearestTo(value, published))) && has < bare(value).length
  if (!isCut) return { present: value, missing: '' }
  let end = 0
  for (let seen = 0; seen < has; end += 1) if (/\S/.test(value.charAt(end))) seen += 1
  return { present: value.slice(0, end), missing: value.slice(end) }
}

/** Describes how a published record differs from the required one, or ''. Uses the nearest of several. */
export function differenceWords(
  { name, value }: { name: string; value: string },
  published: readonly string[],
): string {
  if (/^v=spf1\b/i.test(value)) {
    if (published.length > 1) return `${published.length} SPF records, but receivers only accept one`
    const has = new Set(published[0]?.toLowerCase().split(/\s+/))
    const lacks = value.split(' ').filter((term) => !has.has(term.toLowerCase()))
    return `lacks ${lacks.join(' ')}`
  }
  const nearest = nearestTo(value, published)
  const words = describeMismatch(value, nearest)
  if (published.length === 1) return words
  const closest = words === '' ? '' : `. The closest one: ${words}`
  return `none of the ${published.length} records at ${name} match${closest}`
}
