/**
 * The errors of the service: the API's codes and additional ones. The domain throws or returns them.
 * api/http/errors.ts maps each code to an HTTP status, which the compiler enforces.
 */

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

/** A field at fault by its path, such as `contacts[3].email`, and what is wrong with it, such as `must be a string`. */
export type FieldError = { field: string; problem: string }

/** The problem of a field that is absent. The sentence about several such fields names them together. */
export const REQUIRED = 'is required'

/** Writes the sentences about fields that clients and operators read. Pages write their own, by their labels. */
function describeFields(fields: readonly FieldError[]): string {
  const missing = fields.flatMap(({ field, problem }) => (problem === REQUIRED ? [field] : []))
  const list =
    missing.length > 1 ? [`${missing.slice(0, -1).join(', ')} and ${missing.at(-1)} are required.`] : []
  const others = fields.filter(({ problem }) => list.length === 0 || problem !== REQUIRED)
  return [...list, ...others.map(({ field, problem }) => `${field} ${problem}.`)].join(' ')
}

/**
 * A request, or one item of it, that the service rejects, with the fields at fault or, where it is about no field, a
 * message. Both hold no secret: the caller reads them. Code reads `code` and `fields`, never `message`. `retry_after`
 * is in whole seconds.
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

/** Makes the error of one field of a request. */
export const invalidField = (field: string, problem: string): RequestError =>
  new RequestError('bad_request', { field, problem })

/** Why a call or a process is unavailable: a label of the log and of heliograph_rejected_total. */
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

/** An `unavailable` of the API, with its reason. */
export class Unavailable extends RequestError {
  readonly reason: UnavailableReason

  constructor(reason: UnavailableReason, message: string, retry_after?: number) {
    super('unavailable', message, retry_after)
    this.reason = reason
  }
}

/** An error and what caused it, outermost first; what was thrown that is no error ends it. */
export function* causes(error: unknown): Generator<Error & { code?: unknown }> {
  for (let fault = error; fault instanceof Error; fault = fault.cause) yield fault
}

/** What an error says; as text what was thrown and is no error. */
export const errorWords = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The result, or the refusal that was thrown on the way to it. Other errors pass through. */
export function resultOrError<T>(make: () => T): T | RequestError {
  try {
    return make()
  } catch (error) {
    if (error instanceof RequestError) return error
    throw error
  }
}

/** A refusal as data, which threads, rows and answers hold: a class does not survive the way there. */
export type ErrorData = { code: Code; message: string }
export const errorData = ({ code, message }: RequestError): ErrorData => ({ code, message })
export const errorFrom = ({ code, message }: ErrorData): RequestError => new RequestError(code, message)
