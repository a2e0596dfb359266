/**
 * Converts errors to HTTP responses. This is the only module that knows both codes and statuses. For an internal error
 * the caller only gets the request's ID.
 */

import { LimitReached } from '../../db/accounts/teams/rate-limit.ts'
import { type Code, errorData, RequestError, Unavailable, type UnavailableReason } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { isDatabaseUnavailable } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import { rateHeaders } from './rate.ts'
import { TEXTS } from './texts.ts'

export const STATUS: Record<Code, number> = {
  bad_request: 400,
  batch_too_large: 400,
  invalid_from: 400,
  invalid_headers: 400,
  invalid_reply_to: 400,
  invalid_phone: 400,
  invalid_params: 400,
  template_disabled: 400,
  template_unsupported: 400,
  unauthorized: 401,
  quota_exceeded: 402,
  insufficient_scope: 403,
  domain_not_allowed: 403,
  contact_not_found: 404,
  not_found: 404,
  method_not_allowed: 405,
  contact_exists: 409,
  contact_suppressed: 409,
  invalid_state: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  from_domain_not_verified: 422,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
}

export type Answer = { status: number; body?: unknown; headers?: Record<string, string>; trace?: Trace }

/** The part of a request's log line that describes its response: codes, counts and IDs, never content. */
export type Trace = {
  code?: Code
  reason?: UnavailableReason
  ids?: readonly string[]
  accepted?: number
  refused?: number
}

/** The most IDs in a log line. They are enough to find the others. */
const MAX_IDS_TRACED = 3

export const tracing = (ids: readonly string[]): Trace => ({ ids: ids.slice(0, MAX_IDS_TRACED) })

/** Returns the error for the caller. Logs internal errors with the request's ID. */
export function toRequestError(error: unknown, requestId: string, log: Log): RequestError {
  if (error instanceof RequestError) return error
  if (isDatabaseUnavailable(error)) {
    log.warn({ request_id: requestId, err: error }, 'database unavailable')
    return new Unavailable('database', TEXTS.unavailable, 1)
  }
  log.error({ request_id: requestId, err: error }, 'request failed')
  return new RequestError('internal_error', fill(TEXTS.internal, { id: requestId }))
}

export const reasonOf = (refusal: RequestError): { reason?: UnavailableReason } =>
  refusal instanceof Unavailable ? { reason: refusal.reason } : {}

export function errorResponse(refusal: RequestError): Answer {
  const headers: Record<string, string> = {}
  if (refusal.retry_after !== undefined) headers['Retry-After'] = String(refusal.retry_after)
  if (refusal instanceof LimitReached) Object.assign(headers, rateHeaders(refusal.limit_state))
  if (refusal.code === 'unauthorized') headers['WWW-Authenticate'] = 'Bearer'
  // Only a limited part of an oversized body is read (read-body.ts), so the connection can't be reused.
  if (refusal.code === 'payload_too_large') headers.Connection = 'close'
  const { code } = refusal
  const trace = { code, ...reasonOf(refusal) }
  return { status: STATUS[code], body: { error: errorData(refusal) }, headers, trace }
}
