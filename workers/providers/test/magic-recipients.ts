/**
 * Selects the simulated result of an email by its recipient, in test teams and in the sandbox. Pure. It uses
 * neutral terms, which the sandbox translates into each provider's. It recognizes these local parts of
 * addresses, at any domain and in any case (`+suffix` allowed):
 * - delivered@ bounced@ are accepted, then reported as such.
 * - complained@ opened@ clicked@ are accepted, reported as delivered, then as such.
 * - deferred@ is deferred twice, then accepted. refused@ is rejected permanently.
 * - suppressed@ isn't sent to, like an address with a hard bounce today.
 */

type EmailReply = 'taken' | 'deferred' | 'refused'
export type EmailReport = 'delivered' | 'bounced' | 'complained' | 'opened' | 'clicked'

const SIMULATED_DEFERRALS = 2

const EMAIL_REPORTS = new Map<string, readonly EmailReport[]>([
  ['delivered', ['delivered']],
  ['bounced', ['bounced']],
  ['complained', ['delivered', 'complained']],
  ['opened', ['delivered', 'opened']],
  ['clicked', ['delivered', 'clicked']],
])

const magicPart = (address: string): string => /^[^@+]*/.exec(address.toLowerCase())?.[0] ?? ''

/**
 * True if an address is suppressed by its name. A test suite sees the effect of suppression, and nothing is stored.
 */
export const isSuppressedByName = (address: string): boolean => magicPart(address) === 'suppressed'

export const isMagic = (address: string): boolean =>
  ['deferred', 'refused', 'suppressed', ...EMAIL_REPORTS.keys()].includes(magicPart(address))

/** Returns the response to an email to an address. @param tries the number of earlier deferrals. */
export function emailReply(address: string, tries: number): EmailReply {
  const part = magicPart(address)
  if (part === 'refused') return 'refused'
  return part === 'deferred' && tries < SIMULATED_DEFERRALS ? 'deferred' : 'taken'
}

/** Returns the reports for an accepted email to an address, in order. Null for an ordinary address. */
export const emailReports = (address: string): readonly EmailReport[] | null =>
  EMAIL_REPORTS.get(magicPart(address)) ?? null
