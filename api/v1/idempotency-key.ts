/**
 * The Idempotency-Key header of a single send: the body's idempotency_key by another way.
 * Promises: two keys that differ are `bad_request`, which comes before everything but the body's shape. Bodies are
 * read without their headers, on another thread if they are large, so what else is wrong with one is kept until then.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { type AnyObject, type ObjectSchema, object } from 'yup'
import { type ItemOrRefused, itemOf, itemOrRefused, RequestError } from '../../db/errors.ts'
import { idempotencyKey, parse } from '../../db/validation/fields.ts'

const headerSchema = object({ 'Idempotency-Key': idempotencyKey() })

/** A send whose shape is right: its key, and the item or what is wrong with it, as data that threads can hand over. */
export type ParsedSend<T> = { idempotency_key: string | null } & ItemOrRefused<T>

/** Reads a single send. @param make throws the refusal of what the schema cannot say. */
export const parseSend =
  <S extends AnyObject & { idempotency_key?: string | null | undefined }, T>(
    schema: ObjectSchema<S>,
    make: (send: S) => T,
  ) =>
  (value: unknown): ParsedSend<T> => {
    const send = parse(schema, value)
    return { idempotency_key: send.idempotency_key ?? null, ...itemOrRefused(() => make(send)) }
  }

/**
 * The item, under the header's key when its own is absent. @throws RequestError bad_request when they differ; its own
 */
export function withIdempotencyKey<T extends { idempotency_key: string | null }>(
  send: ParsedSend<T>,
  headers: IncomingHttpHeaders,
): T {
  const { 'Idempotency-Key': key } = parse(headerSchema, { 'Idempotency-Key': headers['idempotency-key'] })
  if (key !== undefined && send.idempotency_key !== null && send.idempotency_key !== key) {
    throw new RequestError('bad_request', 'idempotency_key and the Idempotency-Key header must be the same')
  }
  return { ...itemOf(send), idempotency_key: send.idempotency_key ?? key ?? null }
}

/** The item under its own key. @throws RequestError its own */
export const withOwnKey = <T extends object>(
  send: ParsedSend<T>,
): T & { idempotency_key: string | null } => ({ ...itemOf(send), idempotency_key: send.idempotency_key })
