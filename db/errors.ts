/** Error types and codes. api/http/errors.ts maps each code to an HTTP status. */

import { fill, type TextValues } from './fill.ts'

export const CODES = [
  'bad_request',
  'batch_too_large',
  'invalid_from',
  'invalid_headers',
  'invalid_reply_to',
  'invalid_phone',
  'invalid_params',
  'template_disabled',
  'template_unsupported',
  'unauthorized',
  'quota_exceeded',
  'insufficient_scope',
  'domain_not_allowed',
  'contact_not_found',
  'not_found',
  'method_not_allowed',
  'contact_exists',
  'contact_suppressed',
  'invalid_state',
  'payload_too_large',
  'unsupported_media_type',
  'from_domain_not_verified',
  'rate_limited',
  'internal_error',
  'unavailable',
] as const

export type Code = (typeof CODES)[number]

/** An invalid field: its path, such as `contacts[3].email`, and the problem, such as `must be a string`. */
export type FieldError = { field: string; problem: string }

/** The problem of a missing field. Several missing fields share a sentence. */
export const REQUIRED = 'is required'

/** Writes sentences about invalid fields for clients and operators. Pages write their own, with labels. */
function describeFields(fields: readonly FieldError[]): string {
  const missing = fields.flatMap(({ field, problem }) => (problem === REQUIRED ? [field] : []))
  const last = missing.at(-1) ?? ''
  // The comma separates a choice, such as `html or template_id`, from the fields before it.
  const and = last.includes(' or ') ? ', and' : ' and'
  const list = missing.length > 1 ? [`${missing.slice(0, -1).join(', ')}${and} ${last} are required.`] : []
  const others = fields.filter(({ problem }) => list.length === 0 || problem !== REQUIRED)
  return [...list, ...others.map(({ field, problem }) => `${field} ${problem}.`)].join(' ')
}

/**
 * A rejected request or item, with its invalid fields or a message, without secrets. Code checks `code` and `fields`,
 * never `message`. `retry_after` is an integer, in seconds.
 */
export class RequestError extends Error {
  readonly code: Code
  readonly fields: readonly FieldError[]
  readonly retry_after: number | undefined

  constructor(code: Code, reason: string | FieldError | readonly FieldError[], retry_after?: number) {
    const fields = typeof reason === 'string' ? [] : [reason].flat()
    super(typeof reason === 'string' ? reason : describeFields(fields))
    this.name = 'RequestError'
    this.code = code
    this.fields = fields
    this.retry_after = retry_after
  }
}

/** Creates an error from a text with names in braces. */
export const requestError = <Text extends string>(code: Code, text: Text, values: TextValues<Text>) =>
  new RequestError(code, fill(text, values))

/** Creates the error of one field. @param values of the names in braces in the problem, if it has any. */
export const fieldError = <Text extends string>(
  code: Code,
  field: string,
  problem: Text,
  values?: TextValues<Text>,
): RequestError => new RequestError(code, { field, problem: values ? fill(problem, values) : problem })

/** Creates the error of one invalid field. @param values as in `fieldError`. */
export const invalidField = <Text extends string>(field: string, problem: Text, values?: TextValues<Text>) =>
  fieldError('bad_request', field, problem, values)

/** Why a call or process is unavailable. Used in the log and as a label of heliograph_rejected_total. */
export type UnavailableReason =
  | 'database'
  | 'team_busy'
  | 'busy'
  | 'large_bodies'
  | 'body_unread'
  | 'timeout'
  | 'upload_timeout'
  | 'conflict'
  | 'bulk_pending'
  | 'sns_certificate'
  | 'draining'
  | 'not_ready'

/** An `unavailable` error of the API, with its reason. */
export class Unavailable extends RequestError {
  readonly reason: UnavailableReason

  constructor(reason: UnavailableReason, message: string, retry_after?: number) {
    super('unavailable', message, retry_after)
    this.reason = reason
  }
}

/** Returns an error and its causes, outermost first. Stops at a thrown value that isn't an error. */
export function* causes(error: unknown): Generator<Error & { code?: unknown }> {
  for (let fault = error; fault instanceof Error; fault = fault.cause) yield fault
}

/** Returns the message of an error, or a thrown value as text. */
export const errorWords = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Returns the code of an error of Node.js or PostgreSQL, such as ENOENT. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** Returns the result, or the RequestError that was thrown. Other errors pass through. */
export function resultOrError<T>(make: () => T): T | RequestError {
  try {
    return make()
  } catch (error) {
    if (error instanceof RequestError) return error
    throw error
  }
}

/** A RequestError as plain data, for threads, rows and responses. */
export type ErrorData = { code: Code; message: string }
export const errorData = ({ code, message }: RequestError): ErrorData => ({ code, message })
export const errorFrom = ({ code, message }: ErrorData): RequestError => new RequestError(code, message)
