/**
 * The Idempotency-Key header of a single send, another name for idempotency_key in the body. If the two
 * differ, the error is `bad_request`. Only errors in the body's shape come first.
 */

import type { IncomingHttpHeaders } from 'node:http'
import { object } from 'yup'
import { RequestError } from '../../db/errors.ts'
import { idempotencyKey, parse } from '../../db/validation/fields.ts'
import { TEXTS } from './texts.ts'

const headerSchema = object({ 'Idempotency-Key': idempotencyKey() })

/** Uses the header's key if the send has none. @throws RequestError bad_request if they differ */
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
