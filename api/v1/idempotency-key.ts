/**
 * The Idempotency-Key header of a single send: the body's idempotency_key by another way.
 * Promises: two keys that differ are `bad_request`, which comes before everything but the body's shape.
 */

import type { IncomingHttpHeaders } from 'node:http'
import { object } from 'yup'
import { RequestError } from '../../db/errors.ts'
import { idempotencyKey, parse } from '../../db/validation/fields.ts'
import { TEXTS } from './texts.ts'

const headerSchema = object({ 'Idempotency-Key': idempotencyKey() })

/** A send under the header's key when its own is absent. @throws RequestError bad_request when they differ */
export function withIdempotencyKey<S extends { idempotency_key?: string | undefined }>(
  send: S,
  headers: IncomingHttpHeaders,
): S {
  const { 'Idempotency-Key': key } = parse(headerSchema, { 'Idempotency-Key': headers['idempotency-key'] })
  if (key !== undefined && send.idempotency_key !== undefined && send.idempotency_key !== key) {
    throw new RequestError('bad_request', TEXTS.keysDiffer)
  }
  return key === undefined ? send : { ...send, idempotency_key: key }
}
