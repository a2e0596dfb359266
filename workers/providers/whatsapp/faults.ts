/**
 * Judges errors of the WhatsApp Cloud API: error codes, never text → outcomes. Pure. An operator's error (token,
 * permission, payment, number) never ends a message. Codes are from Meta's error reference of May 2026.
 */

import { isUnsent } from '../../../db/process/http-client.ts'
import { describeFailure, faultCodes } from '../../../db/process/limited-response.ts'
import { NOT_CONNECTED } from '../connection.ts'
import type { Describe } from '../provider.ts'
import type { WhatsappOutcome } from './provider.ts'

/** The parts of the API's error that are used. `subcode` is 0 without one. */
export type CloudError = { code: number; subcode: number; words: string }

/** Reads an error code, a number or a string of digits. Null for any other value. */
export function readCode(value: unknown): number | null {
  if (typeof value === 'number') return Number.isInteger(value) ? value : null
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : null
}

const MINUTE_S = 60

/** Token, permission, policy, payment, number. Nothing is sent until manual action. */
const ACCOUNT = new Set([0, 3, 10, 33, 190, 368, 131031, 131037, 131042, 131045, 133010])
const SPAM_RATE = 131048
const SPAM_PAUSE_S = 60 * MINUTE_S
/** Limits of the number, the app, or the business account. */
const TOO_FAST = new Set([4, 80007, 130429])
/** Too fast for this recipient, who accepts about one message in 6 s. */
const PAIR_RATE = 131056
const PAIR_PAUSE_S = 6
/** Temporary errors on their side. */
const FOR_NOW = new Set([1, 2, 131000, 131016, 131057, 133004])
/** The recipient, the window, the content, an experiment. A retry doesn't change it. */
const FOR_GOOD = new Set([
  100, 130472, 130497, 131005, 131008, 131009, 131021, 131026, 131047, 131049, 131050, 131051, 131052, 131053,
  131055, 135000,
  // The parameters, after Meta has filled them in. The template itself is fine.
  132005, 132012, 132018,
])
const TEMPLATE_PAUSED = 132015
const TEMPLATE_DISABLED = 132016

/** Parameter errors are 100. With this subcode the API doesn't know our own number. */
const UNKNOWN_OBJECT = 33
const isAccount = ({ code, subcode }: CloudError): boolean =>
  ACCOUNT.has(code) || (code >= 200 && code <= 299) || (code === 100 && subcode === UNKNOWN_OBJECT)
const isTemplate = ({ code }: CloudError): boolean => code >= 132000 && code <= 132999 && !FOR_GOOD.has(code)

/** Returns the outcome of an error that the API names. Null for an unknown code. */
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

/** 4xx statuses that aren't about the message itself. */
const ABOUT_OTHERS = new Set([401, 403, 408, 425, 429])
/** How many attempts a message gets if Meta rejects it with an unknown code. */
const ATTEMPTS_OF_UNKNOWN_CODE = 3

/** True if an unknown code ends the message. @param deferrals how often it was deferred before. */
export const isFinalUnknownCode = (status: number, deferrals: number): boolean =>
  status >= 400 && status < 500 && !ABOUT_OTHERS.has(status) && deferrals + 1 >= ATTEMPTS_OF_UNKNOWN_CODE

/**
 * Returns the outcome of a response without a known error: a proxy's, a broken one, or a new code.
 * @param retry_after the response's Retry-After in seconds.
 */
export function judgeStatus(status: number, detail: string, retry_after?: number): WhatsappOutcome {
  if (status === 401 || status === 403) return { kind: 'sender', detail, trouble: 'setup' }
  const paused = retry_after !== undefined && (status === 429 || status === 503)
  if (paused) return { kind: 'sender', detail, trouble: 'slow', wait_seconds: retry_after }
  if (status === 429) return { kind: 'sender', detail, trouble: 'slow' }
  // A gateway got no response, or a broken one. The request may have been processed.
  if (status === 502 || status === 504) return { kind: 'unknown', detail }
  return { kind: 'deferred', detail }
}

/** Returns the outcome of a request without a response. It is only safe to repeat if nothing can have been sent. */
export function judgeFailure(error: unknown, describe: Describe): WhatsappOutcome {
  const codes = [...faultCodes(error)]
  const words = describeFailure(error)
  if (isUnsent(error) || (codes.length > 0 && codes.every((code) => NOT_CONNECTED.has(code)))) {
    return { kind: 'sender', detail: describe(`no connection: ${words}`), trouble: 'connection' }
  }
  return { kind: 'unknown', detail: describe(`no response after the request was sent: ${words}`) }
}
