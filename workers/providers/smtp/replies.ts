/**
 * Judges the replies or silence of an SMTP server about a message: reply codes and errors → outcomes. Pure.
 * db/validation/failures.ts classifies permanent failures. `detail` is printable, short and without secrets. An
 * operator's error (login, relay access, TLS) never ends a message. DECISIONS: Sender failures, Delivery reports.
 */
import type { NodemailerError } from 'nodemailer'
import { classifyFailure, type FailureSubject } from '../../../db/validation/failures.ts'
import type { Describe, Outcome } from '../provider.ts'
import { withWayOut } from './url.ts'

/** The state of one attempt when it ends. `handed_over` is true once the final dot is written to the socket. */
export type Attempt = {
  to: readonly string[]
  /** True once a command about this message was sent. nodemailer also calls a later failure CONN. */
  isBegun: () => boolean
  handed_over: boolean
  /** Recipients that the server rejected by name so far, with its replies. */
  refusals: () => readonly NodemailerError[]
}

/** 530, 534, 535, 538: the login is missing or wrong. */
const LOGIN_CODES: ReadonlySet<number> = new Set([530, 534, 535, 538])
/**
 * 421: too many connections or closing down. 454: throttled, or temporarily no relaying. Both concern every message.
 */
const SLOW_DOWN_CODES: ReadonlySet<number> = new Set([421, 454])
/** nodemailer's command names before a message. An error there isn't about any message. */
const BEFORE_MAIL: ReadonlySet<string> = new Set(['CONN', 'EHLO', 'HELO', 'STARTTLS'])
/** True if a relay rejects our EHLO name: some use 421, for every message (nodemailer #1742). */
const isNameRejected = ({ command, responseCode = 0 }: NodemailerError): boolean =>
  (command === 'EHLO' || command === 'HELO') && (responseCode === 421 || responseCode >= 500)
const NAME_REJECTED = 'The relay rejected our name. Set SMTP_EHLO_NAME to this host’s public name'
const NO_TLS = 'The relay didn’t start TLS. If it has none, add ?requireTLS=false to SMTP_URL'

/** Prefixes a response to EHLO or STARTTLS with the setting that helps. Others stay unchanged. */
export function withSetting(error: NodemailerError, words: string): string {
  if (isNameRejected(error)) return `${NAME_REJECTED}. Response: ${words}`
  return error.command === 'STARTTLS' && error.response ? `${NO_TLS}. Response: ${words}` : words
}

/** Bad sequence of commands, which is about the session, not the message. */
const BAD_SEQUENCE = 503
/** True for more recipients than the server accepts per message (RFC 5321 §4.5.3.1.10). The rest wait. */
const isOverLimit = (reply: string, enhanced: string): boolean =>
  enhanced === '5.5.3' || (enhanced === '' && /\btoo many recipients\b/i.test(reply))
/** Exim and similar servers reject a client that may not relay with a bare 550. */
const NO_RELAYING =
  /\brelay(?:ing)? (?:access )?(?:not permitted|denied|prohibited)|\bnot permitted to relay\b/i
/** SES over SMTP reports these only as text, after DATA. Its API has error names for them. */
const SES_SET_UP =
  /^554 (?:Message rejected: (?:Email address is not verified|Sending (?:is )?paused)|Access denied)/i

/** Microsoft's codes for a login that may not send as this sender, sent as late as after DATA. */
const SEND_AS_DENIED: ReadonlySet<string> = new Set(['5.7.60', '5.2.252'])

/** A relay's own limit, in the text of cPanel, Gmail and Exchange Online. It rejects all our email for a while. */
const TOO_FAST =
  /\bexceeded the max (?:emails per hour|defers and failures)|\bdaily (?:user sending|smtp relay(?: sending)?|sending) (?:limit|quota)|\bsubmission ?quota ?exceeded|\bdaily limit for message recipients/i

type Stage = 'MAIL' | 'RCPT' | 'DATA'

/** Returns an outcome for each recipient of the attempt after the server accepted the message. */
export function outcomesOfSuccess(
  attempt: Attempt,
  reply: string,
  { describe, delivers = false }: { describe: Describe; delivers?: boolean },
): Map<string, Outcome> {
  const shared: Outcome = isOfOneCode(reply)
    ? { kind: 'accepted', detail: describe(reply), ...(delivers ? { delivered: true } : {}) }
    : { kind: 'unknown', detail: describe(`the server's response is contradictory: ${reply}`) }
  return outcomes(attempt.to, shared, attempt.refusals(), describe)
}

/** True if every line of a reply has the same code, as RFC 5321 requires. The client only reads the first one. */
const isOfOneCode = (reply: string): boolean =>
  reply.split('\n').every((line) => line.trim() === '' || line.slice(0, 3) === reply.slice(0, 3))

/** Returns an outcome for each recipient of the attempt if the message wasn't accepted for all of them. */
export function outcomesOfFailure(attempt: Attempt, error: NodemailerError, describe: Describe) {
  const shared = judgeFailure(attempt, error, describe)
  // with PIPELINING, replies to RCPT after a rejected MAIL only mean that MAIL is missing
  const refusals = error.command === 'MAIL FROM' ? [] : attempt.refusals()
  return outcomes(attempt.to, shared, refusals, describe)
}

/** Postfix's reply to RCPT for a rejected sender, because it waits for the recipient. */
const SENDER_REJECTED = /\bsender address rejected\b/i

/** Returns the server's reply if it rejected the sender, at MAIL or for every recipient; otherwise null. */
export function senderRejection(attempt: Attempt, error: NodemailerError): string | null {
  const { command, response = '', responseCode = 0 } = error
  const isPaced = SLOW_DOWN_CODES.has(responseCode) || responseCode === 452 || responseCode === 552
  if (command === 'MAIL FROM') return /^[45]\d\d/.test(response) && !isPaced ? response : null
  const refusals = attempt.refusals().map((refusal) => refusal.response ?? '')
  const isOfSender =
    refusals.length === attempt.to.length && refusals.every((each) => SENDER_REJECTED.test(each))
  return isOfSender ? (refusals[0] ?? null) : null
}

/** Recipients rejected by name keep their own outcome. The others share the message's. */
function outcomes(
  to: readonly string[],
  shared: Outcome,
  refusals: readonly NodemailerError[],
  describe: Describe,
): Map<string, Outcome> {
  const found = new Map(to.map((recipient) => [recipient, shared]))
  for (const { recipient, response } of refusals) {
    if (recipient !== undefined && found.has(recipient)) {
      found.set(recipient, judgeReply(response ?? '', { stage: 'RCPT' }, describe))
    }
  }
  return found
}

function judgeFailure(attempt: Attempt, error: NodemailerError, describe: Describe): Outcome {
  const { code, command, response = '', responseCode = 0 } = error
  // Not sent at all: the server announced its size limit (SIZE, RFC 1870).
  if (code === 'EMESSAGE' && command === 'MAIL FROM' && response === '')
    return { kind: 'refused', detail: describe(`the message is too large: ${error.message}`), effect: 'none' }
  const replied = code === 'EENVELOPE' || code === 'EMESSAGE'
  if (replied && /^[45]\d\d/.test(response)) {
    const stage = command === 'MAIL FROM' ? 'MAIL' : 'DATA'
    return judgeReply(response, { stage, recipients: attempt.to.length }, describe)
  }
  const words = withSetting(error, response || withWayOut(`${error.message}${code ? ` (${code})` : ''}`))
  if (attempt.handed_over && responseCode !== 421) {
    return { kind: 'unknown', detail: describe(`no response after the message was sent: ${words}`) }
  }
  const detail = describe(words)
  if (code === 'EAUTH') return { kind: 'sender', detail, trouble: 'setup' }
  if (isNameRejected(error)) return { kind: 'sender', detail, trouble: 'setup' }
  // 454 to STARTTLS means that TLS is temporarily unavailable (RFC 3207 §4), not that we are too fast.
  const isSlow = SLOW_DOWN_CODES.has(responseCode) && !(command === 'STARTTLS' && responseCode === 454)
  if (isSlow) return { kind: 'sender', detail, trouble: 'slow' }
  // A timeout, or a connection closed without a reply, on one connection after another. No command is named.
  const isSilent = code === 'EABORT' || code === 'ECONNECTION'
  if (!attempt.isBegun() && (BEFORE_MAIL.has(command ?? '') || isSilent)) {
    // The server was reached, but rejects us.
    return { kind: 'sender', detail, trouble: responseCode >= 500 ? 'setup' : 'connection' }
  }
  return { kind: 'deferred', detail }
}

/** Returns the enhanced status code of a reply. '' without one. Cisco's gateways put a `#` before it. */
const toEnhanced = (reply: string): string => /^\d{3}[ -]#?(\d\.\d{1,3}\.\d{1,3})\b/.exec(reply)?.[1] ?? ''

/** 450 and 451, like 4.3.x and 4.7.x, may be about everything that we send. */
const SENDER_CODES: ReadonlySet<number> = new Set([450, 451])
/** The number of leading terms that identify a response. */
const FIRST_WORDS = 3

/**
 * Returns the start of a response, if many of them in a row are about the sender. 4.2.x and 452 are about a mailbox.
 */
function keyOf(reply: string, code: number, enhanced: string): { key?: string } {
  if (code >= 500 || enhanced.startsWith('4.2.')) return {}
  if (!SENDER_CODES.has(code) && !/^4\.[37]\./.test(enhanced)) return {}
  if (code === 452 && !enhanced.startsWith('4.3.')) return {}
  const words = reply.slice(4).split(/\s+/)
  // Addresses, hosts and ids differ between messages.
  const first = words.filter((word) => /^[a-z][a-z',.:;()-]*$/i.test(word)).slice(0, FIRST_WORDS)
  return { key: [code, enhanced, ...first].join(' ').trim().toLowerCase() }
}

function judgeReply(
  reply: string,
  { stage, recipients = 1 }: { stage: Stage; recipients?: number },
  describe: Describe,
): Outcome {
  const code = Number(reply.slice(0, 3))
  const enhanced = toEnhanced(reply)
  const detail = describe(reply)
  // 454 4.7.1 is a temporary "relay access denied", as in Debian's Postfix, perhaps only for this recipient's
  // domain.
  const isPolicy = code === 454 && enhanced.startsWith('4.7.')
  if (isPolicy && stage === 'RCPT') return { kind: 'policy', detail, blames: 'identity', trouble: 'setup' }
  if (isPolicy || LOGIN_CODES.has(code)) return { kind: 'sender', detail, trouble: 'setup' }
  if (SLOW_DOWN_CODES.has(code)) return { kind: 'sender', detail, trouble: 'slow' }
  const forGood = code >= 500 && code <= 599 && code !== BAD_SEQUENCE
  const isPutOff = !forGood || (stage === 'RCPT' && isOverLimit(reply, enhanced))
  if (isPutOff) return { kind: 'deferred', detail, ...keyOf(reply, code, enhanced) }
  const { about, contact } = classifyFailure({ reply })
  if (about === 'message') return { kind: 'refused', detail, effect: 'none' }
  if (stage !== 'MAIL' && TOO_FAST.test(reply)) return { kind: 'sender', detail, trouble: 'slow' }
  const blames = findBlame(reply, enhanced, { stage, about })
  if (blames !== null) return { kind: 'policy', detail, blames }
  // After DATA a reply is about all recipients, so it only proves an address dead if there is a single one.
  const isOfOne = stage === 'RCPT' || recipients === 1
  return { kind: 'refused', detail, effect: isOfOne ? contact : 'none' }
}

/** Returns the subject to blame for a rejection if our configuration is in question, or null. */
function findBlame(
  reply: string,
  enhanced: string,
  { stage, about }: { stage: Stage; about: FailureSubject },
): 'recipient' | 'identity' | null {
  // At MAIL the server only knows the sender.
  if (stage === 'MAIL') return reply.startsWith('552') ? null : 'identity'
  if (SEND_AS_DENIED.has(enhanced)) return 'identity'
  if (about === 'address') return null
  if (stage === 'DATA') return about === 'sender' || SES_SET_UP.test(reply) ? 'identity' : null
  if (enhanced.startsWith('5.7.') || NO_RELAYING.test(reply)) return 'recipient'
  return about === 'sender' ? 'identity' : null
}
