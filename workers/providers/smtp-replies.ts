/**
 * Judges what an SMTP server said, or left unsaid, about a message: reply codes and faults → outcomes.
 * Promises: pure; by code (RFC 5321, RFC 3463), never by wording; `detail` is printable, short and free of secrets.
 * An operator's fault (login, TLS) never ends a message. decisions: delivery reports.
 */
import type { NodemailerError } from 'nodemailer'
import type { Describe, Outcome } from './provider.ts'

/** What is known of one try when it ends. `handed_over`: the final dot has been written to the socket. */
export type Attempt = {
  /** The recipients, as given to the server. */
  to: readonly string[]
  handed_over: boolean
  /** Recipients that the server refused by name, with its replies, as far as the dialogue came. */
  refusals: () => readonly NodemailerError[]
}

/** 530, 534, 535, 538: the login is missing or wrong. */
const LOGIN_CODES: ReadonlySet<number> = new Set([530, 534, 535, 538])
/** 421: too many connections or closing down; 454: throttled, or relaying put off. Both mean every message. */
const SLOW_DOWN_CODES: ReadonlySet<number> = new Set([421, 454])
/** nodemailer's names for what comes before a message: a fault there says nothing about any message. */
const BEFORE_MAIL: ReadonlySet<string> = new Set(['CONN', 'EHLO', 'HELO', 'STARTTLS'])
/** Bad sequence of commands: about the session, not about the message. */
const BAD_SEQUENCE = 503

/** An outcome for each of the attempt's recipients once the server has taken the message. */
export function outcomesOfSuccess(attempt: Attempt, reply: string, describe: Describe): Map<string, Outcome> {
  return outcomes(attempt.to, { kind: 'accepted', detail: describe(reply) }, attempt.refusals(), describe)
}

/** An outcome for each of the attempt's recipients when the message as a whole was not taken. */
export function outcomesOfFailure(
  attempt: Attempt,
  error: NodemailerError,
  describe: Describe,
): Map<string, Outcome> {
  const shared = judgeFailure(attempt, error, describe)
  // with PIPELINING, replies to RCPT after a refused MAIL only say that there was no MAIL
  const refusals = error.command === 'MAIL FROM' ? [] : attempt.refusals()
  return outcomes(attempt.to, shared, refusals, describe)
}

/** Recipients refused by name keep their own outcome; the others share the message's. */
function outcomes(
  to: readonly string[],
  shared: Outcome,
  refusals: readonly NodemailerError[],
  describe: Describe,
): Map<string, Outcome> {
  const found = new Map(to.map((recipient) => [recipient, shared]))
  for (const { recipient, response } of refusals) {
    if (recipient !== undefined && found.has(recipient)) {
      found.set(recipient, judgeReply(response ?? '', true, describe))
    }
  }
  return found
}

function judgeFailure(attempt: Attempt, error: NodemailerError, describe: Describe): Outcome {
  const { code, response } = error
  const replied = code === 'EENVELOPE' || code === 'EMESSAGE'
  if (replied && /^[45]\d\d/.test(response ?? '')) return judgeReply(response ?? '', false, describe)
  const words = response ?? `${error.message}${code ? ` (${code})` : ''}`
  if (attempt.handed_over && error.responseCode !== 421) {
    return { kind: 'unknown', detail: describe(`no answer after the message was handed over: ${words}`) }
  }
  const detail = describe(words)
  if (code === 'EAUTH') return { kind: 'sender', detail, trouble: 'setup' }
  if (SLOW_DOWN_CODES.has(error.responseCode ?? 0)) return { kind: 'sender', detail, trouble: 'slow' }
  if (BEFORE_MAIL.has(error.command ?? '')) return { kind: 'sender', detail, trouble: 'connection' }
  return { kind: 'deferred', detail }
}

/** Judges one reply, to RCPT (`named`: it speaks of one recipient) or to the message. */
function judgeReply(reply: string, named: boolean, describe: Describe): Outcome {
  const code = Number(reply.slice(0, 3))
  const detail = describe(reply)
  if (LOGIN_CODES.has(code)) return { kind: 'sender', detail, trouble: 'setup' }
  if (SLOW_DOWN_CODES.has(code)) return { kind: 'sender', detail, trouble: 'slow' }
  const for_good = code >= 500 && code <= 599 && code !== BAD_SEQUENCE
  if (!for_good) return { kind: 'deferred', detail }
  return { kind: 'refused', detail, effect: named && isDeadAddress(reply) ? 'hard' : 'none' }
}

/** Whether a 5xx reply to RCPT is a permanent bounce: 5.1.x, or a bare 550 (decisions: delivery reports). */
function isDeadAddress(reply: string): boolean {
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(reply)?.[1]
  if (enhanced === undefined) return reply.startsWith('550')
  return enhanced.startsWith('5.1.')
}
