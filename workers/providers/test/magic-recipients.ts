/**
 * What becomes of emails where nothing is delivered: in test teams and in the sandbox, by whom an email is to. Pure;
 * must not know how it is said: the simulator speaks neutral words, the sandbox those of each provider.
 *
 * Local parts of addresses, at any domain and whatever their case (`+suffix` allowed):
 * - delivered@ bounced@ are taken, then reported so.
 * - complained@ opened@ clicked@ are taken, reported delivered, then so.
 * - deferred@ is put off twice, then taken. refused@ is refused for good.
 * - suppressed@ is not sent to, as to an address with a hard bounce of today.
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

/** True if an address is suppressed by its name: a test suite sees what suppression does, and nothing is stored. */
export const isSuppressedByName = (address: string): boolean => magicPart(address) === 'suppressed'

/** True if an address decides by its name what becomes of mail to it. */
export const isMagic = (address: string): boolean =>
  ['deferred', 'refused', 'suppressed', ...EMAIL_REPORTS.keys()].includes(magicPart(address))

/** How mail to an address is answered. @param tries how often it was put off before. */
export function emailReply(address: string, tries: number): EmailReply {
  const part = magicPart(address)
  if (part === 'refused') return 'refused'
  return part === 'deferred' && tries < SIMULATED_DEFERRALS ? 'deferred' : 'taken'
}

/** What is reported of mail to an address once it was taken, in order; null for one without magic. */
export const emailReports = (address: string): readonly EmailReport[] | null =>
  EMAIL_REPORTS.get(magicPart(address)) ?? null
