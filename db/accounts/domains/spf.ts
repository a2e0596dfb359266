/**
 * What a domain's SPF record should say (RFC 7208): that the relay in use may send for it, where the operator names
 * what the relay wants (SPF_INCLUDE). Pure.
 * Promises: a policy of the owner's own is kept: what is suggested in its place is the same with what it lacks.
 */

/** What it is without a policy of the owner's own. */
const DEFAULT_POLICY = ['v=spf1', 'a', 'mx', '~all']

const termsOf = (record: string): string[] => record.trim().split(/\s+/)

/** What a policy lacks: `include:` and a name for each. */
const lackedBy = (record: string, includes: readonly string[]): string[] => {
  const terms = new Set(termsOf(record).map((term) => term.toLowerCase().replace(/^\+/, '')))
  return includes.map((name) => `include:${name}`).filter((term) => !terms.has(term))
}

/** Whether these are one policy that lets the relay send: receivers take several for none (RFC 7208 §4.5). */
export const allowsRelay = (published: readonly string[], includes: readonly string[]): boolean =>
  published.length === 1 && published.every((record) => lackedBy(record, includes).length === 0)

/** The record to publish, in place of what is. What stands behind `all` counts for nothing, so it goes before. */
export function spfValue(includes: readonly string[], published: readonly string[] = []): string {
  const own = published.length === 1 ? termsOf(published[0] ?? '') : DEFAULT_POLICY
  const lacked = lackedBy(own.join(' '), includes)
  const end = own.findIndex((term) => /^([+?~-]?all$|redirect=)/i.test(term))
  const at = end === -1 ? own.length : end
  return [...own.slice(0, at), ...lacked, ...own.slice(at)].join(' ')
}
