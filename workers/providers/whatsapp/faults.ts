/**
 * Judges what the WhatsApp Cloud API answered instead of taking a message: error codes → outcomes.
 * Promises: pure; by code, never by wording; an operator's fault (token, permission, payment, number) never ends a
 * message. Codes are those of Meta's error reference of May 2026.
 */

import { isUnsent } from '../../../db/process/http-client.ts'
import { faultCodes, faultWords } from '../../../db/process/limited-response.ts'
import { NOT_CONNECTED } from '../connection.ts'
import type { Describe } from '../provider.ts'
import type { WhatsappOutcome } from './provider.ts'

/** The API's error as far as we read it. `subcode` 0: none. */
export type CloudError = { code: number; subcode: number; words: string }

const MINUTE_S = 60

/** Token, permission, policy, payment, number: nothing goes through until a person has acted. */
const ACCOUNT = new Set([0, 3, 10, 33, 190, 368, 131031, 131037, 131042, 131045, 133010])
const SPAM_RATE = 131048
const SPAM_PAUSE_S = 60 * MINUTE_S
/** Of the number, the app, the business account. */
const TOO_FAST = new Set([4, 80007, 130429])
/** Too fast to this recipient: it takes about one message in 6 s. */
const PAIR_RATE = 131056
const PAIR_PAUSE_S = 6
/** A passing fault of theirs. */
const FOR_NOW = new Set([1, 2, 131000, 131016, 131057, 133004])
/** The recipient, the window, the content, an experiment: no second try changes it. */
const FOR_GOOD = new Set([
  100, 130472, 130497, 131005, 131008, 131009, 131021, 131026, 131047, 131049, 131050, 131051, 131052, 131053,
  131055, 135000,
  // The parameters, after Meta has filled them in: the template is as good as before.
  132005, 132012, 132018,
])
const TEMPLATE_PAUSED = 132015
const TEMPLATE_DISABLED = 132016

/** Parameter faults are 100; with this subcode it is our own number that the API does not know. */
const UNKNOWN_OBJECT = 33
const isAccount = ({ code, subcode }: CloudError): boolean =>
  ACCOUNT.has(code) || (code >= 200 && code <= 299) || (code === 100 && subcode === UNKNOWN_OBJECT)
const isTemplate = ({ code }: CloudError): boolean => code >= 132000 && code <= 132999 && !FOR_GOOD.has(code)

/** An outcome for an error that the API has named; null for a code that we do not know. */
export function judgeError(error: CloudError): WhatsappOutcome | null {
  const { code, words: detail } = error
  if (isAccount(error)) return { kind: 'sender', detail, trouble: 'setup' }
  if (code === SPAM_RATE) return { kind: 'sender', detail, trouble: 'setup', wait_seconds: SPAM_PAUSE_S }
  if (TOO_FAST.has(code)) return { kind: 'sender', detail, trouble: 'slow' }
  if (code === PAIR_RATE) return { kind: 'deferred', detail, wait_seconds: PAIR_PAUSE_S }
  if (FOR_NOW.has(code)) return { kind: 'deferred', detail }
  if (code === TEMPLATE_PAUSED) return { kind: 'deferred', detail, template: { status: 'paused' } }
  if (code === TEMPLATE_DISABLED) return { kind: 'refused', detail, template: { status: 'disabled' } }
  if (isTemplate(error)) return { kind: 'refused', detail, template: { status: null } }
  return FOR_GOOD.has(code) ? { kind: 'refused', detail } : null
}

/** Statuses of 4xx that say nothing about the message itself. */
const ABOUT_OTHERS = new Set([401, 403, 408, 425, 429])
/** How many attempts a message gets if Meta rejects it with a code that we don't know. */
const ATTEMPTS_OF_UNKNOWN_CODE = 3

/** Whether a code that we don't know ends the message. @param deferrals how often it was deferred before. */
export const isFinalUnknownCode = (status: number, deferrals: number): boolean =>
  status >= 400 && status < 500 && !ABOUT_OTHERS.has(status) && deferrals + 1 >= ATTEMPTS_OF_UNKNOWN_CODE

/**
 * An outcome for an answer without an error that we know: a proxy's, a broken one, or a new code.
 * @param retry_after for how many seconds the answer asks us to wait.
 */
export function judgeStatus(status: number, detail: string, retry_after?: number): WhatsappOutcome {
  if (status === 401 || status === 403) return { kind: 'sender', detail, trouble: 'setup' }
  const paused = retry_after !== undefined && (status === 429 || status === 503)
  if (paused) return { kind: 'sender', detail, trouble: 'slow', wait_seconds: retry_after }
  if (status === 429) return { kind: 'sender', detail, trouble: 'slow' }
  // A gateway got no answer, or a broken one: what it had passed on may have been done.
  if (status === 502 || status === 504) return { kind: 'unknown', detail }
  return { kind: 'deferred', detail }
}

/** An outcome for a request that got no answer: safe to repeat only when nothing can have left. */
export function judgeFailure(error: unknown, describe: Describe): WhatsappOutcome {
  const codes = [...faultCodes(error)]
  const words = faultWords(error)
  if (isUnsent(error) || (codes.length > 0 && codes.every((code) => NOT_CONNECTED.has(code)))) {
    return { kind: 'sender', detail: describe(`no connection: ${words}`), trouble: 'connection' }
  }
  return { kind: 'unknown', detail: describe(`no answer after the request had left: ${words}`) }
}
