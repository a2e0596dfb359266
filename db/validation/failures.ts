/**
 * Classifies why an email failed, and the effect on the contact. SMTP replies, delivery status notifications, SES
 * events and reports of hosted relays share this classifier. Linear in its bounded input. DECISIONS: Failure classes.
 */
import {
  ADDRESS,
  CONNECTION,
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
  OWN_DOMAIN,
  POLICY,
  RATE,
  RECIPIENT_RULE,
  ROUTE,
  SENDER,
  SUBJECTS,
} from './failure-table.ts'

export type { FailureSubject } from './failure-table.ts'

export type FailureReport = {
  /** The reply of the server that failed the email, or ''. */
  reply: string
  /** The enhanced status code in a report, or ''. */
  status?: string
  /** The human-readable text of a report, or ''. Used if the reply has no known phrase. */
  text?: string
}

/** `hard` suppresses the contact. `soft` counts towards five in a row. `none` has no effect. */
export type Failure = { about: FailureSubject; contact: 'hard' | 'soft' | 'none' }

/** No real reply is longer. The rest is the returned message. */
const MAX_REPLY_CHARACTERS = 4_000
const MAX_TEXT_CHARACTERS = 8_000
/** The longest text that ` * ` in a phrase matches. */
const MAX_GAP = 80

const failure = (about: FailureSubject): Failure => ({ about, contact: SUBJECTS[about] })

/** Classifies a permanent failure from any source. */
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
  const byText =
    subjectOfText(words, code) ?? subjectOfText(normalized(text.slice(0, MAX_TEXT_CHARACTERS)), code)
  const byCode = subjectOfCode(code)
  // A missing domain is evidence with any code. With a code about the sender it is the sender's.
  if (byText === 'domain') return failure(byCode === 'sender' ? 'sender' : 'address')
  // The code is temporary, so the provider retried until the time was up and no reply was final.
  if (isLate)
    return failure(byText === 'mailbox_full' || byCode === 'mailbox_full' ? 'mailbox_full' : 'expired')
  if (byText === undefined) return failure(isDisabled(code, words) ? 'address' : (byCode ?? 'unknown'))
  // If code and text disagree, don't blame the address.
  if (byText === 'address' && isOther(byCode, 'address')) return failure(byCode)
  if (NEUTRAL.has(byText) && byCode !== 'address') return failure(byCode ?? byText)
  return failure(byText)
}

const isDisabled = (code: string, words: string): boolean =>
  code === DISABLED_MAILBOX.status && DISABLED_MAILBOX.phrases.some((phrase) => words.includes(phrase))

const NEUTRAL: ReadonlySet<FailureSubject | undefined> = new Set([undefined, 'route', 'expired', 'unknown'])

/** True if the code has a subject other than `subject`. Neutral subjects contradict nothing. */
const isOther = (code: FailureSubject | undefined, subject: FailureSubject): code is FailureSubject =>
  !NEUTRAL.has(code) && code !== subject

/**
 * Picks the enhanced status code to use, or ''. The reply's codes come before the report's, and the last one in the
 * reply wins. Generic codes (x.0.0) are used only if nothing else is known. A 4xx reply makes a generic report
 * temporary.
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
/** Matches a basic reply code at the start of a reply, or after text that a relay puts before it. */
const REPLY_CODES = /(?:^|[:;>\n]\s?|\bsaid:?\s|\berror\s|\breply\s)\s{0,3}'?([245])\d\d(?=[ -])/gi

const subjectOfCode = (code: string): FailureSubject | undefined => {
  const detail = code.slice(2)
  return FAILURE_CODES.find(([, codes]) => codes.test(detail))?.[0]
}

/**
 * Order matters. `address` comes late, because text that also matches another subject is weak evidence about the
 * address.
 */
const BY_TEXT = [
  ['policy', RECIPIENT_RULE],
  ['sender', SENDER],
  ['mailbox_full', MAILBOX_FULL],
  ['message', MESSAGE],
  ['route', NETWORK],
  ['rate', RATE],
  ['policy', POLICY],
  ['domain', NO_DOMAIN],
  ['address', ADDRESS],
  ['policy', CONNECTION],
  ['expired', EXPIRED],
  ['route', ROUTE],
] as const

function subjectOfText(words: string, code: string): FailureSubject | 'domain' | undefined {
  if (words === '') return undefined
  const found = BY_TEXT.find(([, phrases]) => holdsAny(words, phrases))?.[0]
  // RFC 7505: 5.1.10 is about the recipient's domain.
  if (found === 'domain' && !code.endsWith('.1.10') && holdsAny(words, OWN_DOMAIN)) return 'sender'
  return found === 'domain' && holdsAny(words, LOOKUP_FAILED) ? 'route' : found
}

const holdsAny = (words: string, lists: readonly (readonly [string, ...string[]])[]): boolean =>
  lists.some(([, ...phrases]) => phrases.some((phrase) => holds(words, phrase)))

/** True if the parts of a phrase follow each other in the text. */
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

/** Some servers only give the page of a blocklist as their reason. */
const BLOCKLIST_PAGE = /spamhaus|spamcop|barracudacentral/i

/** Removes addresses, hosts and links, because their names show nothing about the failure: `spam@example.org`. */
const normalized = (text: string): string =>
  text
    .replaceAll('’', "'")
    .replace(/(?<![a-z0-9])https?:\/\/[^\s<>"]+/gi, (link) => (BLOCKLIST_PAGE.test(link) ? ' dnsbl ' : ' '))
    .replace(/(?<![^\s<>()[\]"',:;=])[^\s<>()[\]"',:;=@]{1,64}@[^\s<>()[\]"',:;]{1,255}/g, '@')
    .replace(/(?<![a-z0-9.-])(?:host )?[a-z0-9.-]{1,255} ?\[[0-9a-f]{0,4}(?:[.:][0-9a-f]{0,4}){2,9}\]/gi, ' ')
    .replace(/\s+/g, ' ')
    .toLowerCase()
