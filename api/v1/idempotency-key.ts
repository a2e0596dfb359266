/** The Idempotency-Key header of a single send: the body's idempotency_key by another way (decisions: Input). */
import type { IncomingHttpHeaders } from 'node:http'
import { object } from 'yup'
import { Refusal } from '../../db/errors.ts'
import { idempotencyKey, parse } from '../../db/text/fields.ts'

const headerSchema = object({ 'Idempotency-Key': idempotencyKey() })

/** The item, under the header's key when its own is absent. @throws Refusal bad_request when they differ. */
export function underKey<T extends { idempotency_key: string | null }>(
  item: T,
  headers: IncomingHttpHeaders,
): T {
  const given = headers['idempotency-key']
  if (given === undefined) return item
  const { 'Idempotency-Key': key } = parse(headerSchema, { 'Idempotency-Key': given })
  if (item.idempotency_key !== null && item.idempotency_key !== key) {
    throw new Refusal('bad_request', 'idempotency_key and the Idempotency-Key header must be the same')
  }
  return { ...item, idempotency_key: key ?? null }
}
