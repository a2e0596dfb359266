/**
 * The refusals that the service knows, as one closed list of the API's codes and those that were added to them.
 * The domain throws or returns them. Must not know HTTP: api/http/errors.ts does, and the compiler demands a status
 * there for each code here.
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

/**
 * A request, or one item of it, that the service will not carry out. The message is for the caller's eyes:
 * it names the field and holds no secret. `retry_after` is in whole seconds.
 */
export class Refusal extends Error {
  readonly code: Code
  readonly retry_after: number | undefined

  constructor(code: Code, message: string, retry_after?: number) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.retry_after = retry_after
  }
}

/** Why a call or a process is unavailable: a label of the log and of heliograph_rejected_total. */
export const UNAVAILABLE_REASONS = [
  'database',
  'team_busy',
  'busy',
  'large_bodies',
  'body_unread',
  'timeout',
  'upload_timeout',
  'conflict',
  'bulk_pending',
  'sns_certificate',
  'draining',
  'not_ready',
] as const

export type UnavailableReason = (typeof UNAVAILABLE_REASONS)[number]

/** An `unavailable` of the API, with its reason. */
export class Unavailable extends Refusal {
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
export function orRefusal<T>(make: () => T): T | Refusal {
  try {
    return make()
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

/** A refusal as data, which threads, rows and answers hold: a class does not survive the way there. */
export type RefusalData = { code: Code; message: string }
export const refusalData = ({ code, message }: Refusal): RefusalData => ({ code, message })
export const refusalFrom = ({ code, message }: RefusalData): Refusal => new Refusal(code, message)

export type ItemOrRefused<T> = { item: T } | { refused: RefusalData }

/** What was made, or the refusal that it ended with, as data. */
export function itemOrRefused<T>(make: () => T): ItemOrRefused<T> {
  const item = orRefusal(make)
  return item instanceof Refusal ? { refused: refusalData(item) } : { item }
}

/** @throws Refusal what it is refused for */
export function itemOf<T>(settled: ItemOrRefused<T>): T {
  if ('item' in settled) return settled.item
  throw refusalFrom(settled.refused)
}
