/**
 * Classifies why an email failed: what the failure is about, and what it means for the contact. One classifier for SMTP
 * replies, delivery status notifications, SES and hosted relays, so that one event has one effect by any route.
 * Pure, and linear in its bounded input. DECISIONS: Failure classes.
 */
import {
  ADDRESS,
  DISABLED_MAILBOX,
  EXPIRED,
  FAILURE_CODES,
  type FailureSubject,
  LOOKUP_FAILED,
  MAILBOX_FULL,
  MESSAGE,
  MICROSOFT_NO_RECIPIENT,
  NETWORK,
  NO_DOMAIN,
  POLICY,
  RATE,
  ROUTE,
  SENDER,
} from './failure-table.ts'

export type { FailureSubject } from './failure-table.ts'

/** What servers say about a failure. Only `reply` is the server's that failed the email. */
export type FailureReport = {
  /** The remote server's own reply, '' without one. */
  reply: string
  /** The enhanced status code that a report gives, '' without one. */
  status?: string
  /** What a report says to people, '' without it. Read if the reply says nothing. */
  text?: string
}

/** `hard` suppresses the contact, `soft` counts towards five in a row, `none` leaves it untouched. */
export type Failure = { about: FailureSubject; contact: 'hard' | 'soft' | 'none' }

/** No reply is longer. The rest of a report is what it returns. */
const MAX_REPLY_CHARACTERS = 4_000
const MAX_TEXT_CHARACTERS = 8_000
/** How much ` * ` in a phrase stands for. */
const MAX_GAP = 80

const CONTACT: Record<FailureSubject, Failure['contact']> = {
  address: 'hard',
  mailbox_full: 'soft',
  policy: 'none',
  rate: 'none',
  message: 'none',
  sender: 'none',
  route: 'soft',
  expired: 'soft',
  unknown: 'soft',
}

const failure = (about: FailureSubject): Failure => ({ about, contact: CONTACT[about] })

/** A failure for good, by any route. */
export function classifyFailure({ reply, status = '', text = '' }: FailureReport): Failure {
  const said = reply.slice(0, MAX_REPLY_CHARACTERS)
  const code = failureCode(said, status)
  const words = normalized(said)
  const isLate = code.startsWith('4.')
  if (
    code === MICROSOFT_NO_RECIPIENT.status &&
    MICROSOFT_NO_RECIPIENT.phrases.some((each) => words.includes(each))
  )
    return failure('address')
  const byText = subjectOfText(words) ?? subjectOfText(normalized(text.slice(0, MAX_TEXT_CHARACTERS)))
  const byCode = subjectOfCode(code)
  if (byText === 'domain') return failure(isOther(byCode, 'address') ? byCode : 'address')
  // Sent again and again until the time was over: no answer was final.
  if (isLate)
    return failure(byText === 'mailbox_full' || byCode === 'mailbox_full' ? 'mailbox_full' : 'expired')
  if (byText === undefined) return failure(isDisabled(code, words) ? 'address' : (byCode ?? 'unknown'))
  // If code and text disagree, neither is evidence about the address.
  if (byText === 'address' && isOther(byCode, 'address')) return failure(byCode)
  if (NEUTRAL.has(byText) && byCode !== 'address') return failure(byCode ?? byText)
  return failure(byText)
}

const isDisabled = (code: string, words: string): boolean =>
  code === DISABLED_MAILBOX.status && DISABLED_MAILBOX.phrases.some((phrase) => words.includes(phrase))

const NEUTRAL: ReadonlySet<FailureSubject | undefined> = new Set([undefined, 'route', 'expired', 'unknown'])

/** Whether a code is about another row of the table: those of the last row contradict nothing. */
const isOther = (code: FailureSubject | undefined, subject: FailureSubject): code is FailureSubject =>
  !NEUTRAL.has(code) && code !== subject

/**
 * The enhanced status code that counts, '' without one. The server's own outranks the report's: the innermost one,
 * wherever it stands in the reply, unless it says nothing (x.0.0). A reply code of 4xx makes a failure one for now.
 */
export function failureCode(reply: string, status: string): string {
  const given = GIVEN.exec(status)?.[0] ?? ''
  const codes = [...reply.matchAll(ENHANCED)].map(([code]) => code)
  const own = codes.findLast((code) => !code.endsWith('.0.0'))
  if (own !== undefined) return own
  const basic = [...reply.matchAll(REPLY_CODES)].at(-1)?.[1]
  if (basic === '4' && given.endsWith('.0.0')) return '4.0.0'
  return given || codes.at(-1) || (basic === undefined ? '' : `${basic}.0.0`)
}

const ENHANCED = /(?<![\d.]|[a-z]-)[45]\.\d{1,3}\.\d{1,3}(?!\d|\.\d)/gi
const GIVEN = /(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![\d.])/
/** Where a server's reply begins: at the beginning, or behind what a relay has put before it. */
const REPLY_CODES = /(?:^|[:;>\n]\s?|\bsaid:?\s|\berror\s|\breply\s)\s{0,3}'?([245])\d\d(?=[ -])/gi

const subjectOfCode = (code: string): FailureSubject | undefined => {
  const detail = code.slice(2)
  return FAILURE_CODES.find(([, codes]) => codes.test(detail))?.[0]
}

/** Other rows come before the address: text that says both is no evidence. */
const BY_TEXT = [
  ['sender', SENDER],
  ['mailbox_full', MAILBOX_FULL],
  ['message', MESSAGE],
  ['route', NETWORK],
  ['rate', RATE],
  ['policy', POLICY],
  ['domain', NO_DOMAIN],
  ['address', ADDRESS],
  ['expired', EXPIRED],
  ['route', ROUTE],
] as const

function subjectOfText(words: string): FailureSubject | 'domain' | undefined {
  if (words === '') return undefined
  const found = BY_TEXT.find(([, phrases]) => holdsAny(words, phrases))?.[0]
  return found === 'domain' && holdsAny(words, LOOKUP_FAILED) ? 'route' : found
}

const holdsAny = (words: string, lists: readonly (readonly [string, ...string[]])[]): boolean =>
  lists.some(([, ...phrases]) => phrases.some((phrase) => holds(words, phrase)))

/** Whether the parts of a phrase follow each other in a text. */
function holds(words: string, phrase: string): boolean {
  let at = 0
  let isFirst = true
  for (const part of phrase.split(' * ')) {
    const found = words.indexOf(part, at)
    if (found < 0 || (!isFirst && found - at > MAX_GAP)) return false
    at = found + part.length
    isFirst = false
  }
  return true
}

/** Pages of blocklists: some servers give nothing else as the reason. */
const BLOCKLIST_PAGE = /spamhaus|spamcop|barracudacentral/i

/** Names of people, hosts and pages say nothing: `spam@example.org` is a mailbox. */
const normalized = (text: string): string =>
  text
    .replaceAll('’', "'")
    .replace(/(?<![a-z0-9])https?:\/\/[^\s<>"]+/gi, (link) => (BLOCKLIST_PAGE.test(link) ? ' dnsbl ' : ' '))
    .replace(/(?<![^\s<>()[\]"',:;=])[^\s<>()[\]"',:;=@]{1,64}@[^\s<>()[\]"',:;]{1,255}/g, '@')
    .replace(/(?<![a-z0-9.-])(?:host )?[a-z0-9.-]{1,255} ?\[[0-9a-f.:]{3,45}\]/gi, ' ')
    .replace(/\s+/g, ' ')
    .toLowerCase()
