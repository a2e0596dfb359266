/**
 * Reads what a client sent: JSON bodies and query strings, by yup schema, or `bad_request`.
 * Promises: types are never coerced, null means absent, unknown fields are left alone, and the message names the
 * field with its path (decisions: Input). Must not know any resource.
 */
import type { IncomingMessage } from 'node:http'
import { type AnyObject, array, type InferType, mixed, type ObjectSchema, string, ValidationError } from 'yup'
import { Refusal } from '../db/errors.ts'
import { codePoints, isPlainMap, isUuid, textFault, utf8Bytes } from '../db/text/strings.ts'

const BODY_LIMIT = 10 * 1024 * 1024
const JSON_TYPE = /^application\/json *(;|$)/i

async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = () =>
    new Refusal('payload_too_large', `the body must be at most ${limit / 1024 / 1024} MiB`)
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge()
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The raw body. @throws Refusal payload_too_large, bad_request when there is none. */
export async function readRawBody(request: IncomingMessage, limit = BODY_LIMIT): Promise<Buffer> {
  const bytes = await readBytes(request, limit)
  if (bytes.length === 0) throw new Refusal('bad_request', 'a body is required')
  return bytes
}

/** The parsed JSON body. @throws Refusal bad_request, unsupported_media_type, payload_too_large */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const { headers } = request
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (hasBody && !JSON_TYPE.test(headers['content-type'] ?? '')) {
    throw new Refusal('unsupported_media_type', 'the body must be application/json')
  }
  if (hasBody && (headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new Refusal('unsupported_media_type', 'the body must not be compressed')
  }
  const bytes = await readRawBody(request)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new Refusal('bad_request', 'the body must be valid JSON')
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const under = (path: string, member: string): string => (path === '' ? member : `${path}.${member}`)

/**
 * The fields of `value` that the schema knows, validated.
 * @param path where the value lies in the body, '' for the body itself.
 * @throws Refusal bad_request
 */
export function parse<T extends AnyObject>(schema: ObjectSchema<T>, value: unknown, path = ''): T {
  if (!isObject(value)) throw new Refusal('bad_request', `${path || 'the body'} must be an object`)
  const known = Object.keys(schema.fields).filter(
    (field) => Object.hasOwn(value, field) && value[field] !== null,
  )
  const fields = Object.fromEntries(known.map((field) => [field, value[field]]))
  const fault = textFault(fields)
  if (fault) throw new Refusal('bad_request', `${under(path, fault.path)} ${fault.problem}`)
  try {
    schema.validateSync(fields, { strict: true })
    return fields as T
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Refusal('bad_request', under(path, error.errors[0] ?? 'the body is malformed'))
  }
}

/** The items of a batch. @throws Refusal bad_request, batch_too_large */
export function parseBatch(body: unknown, field: string, limit: number): unknown[] {
  const items = isObject(body) ? body[field] : undefined
  if (!isObject(body)) throw new Refusal('bad_request', 'the body must be an object')
  if (!Array.isArray(items)) throw new Refusal('bad_request', `${field} must be an array`)
  if (items.length > limit) throw new Refusal('batch_too_large', `${field} must have at most ${limit} items`)
  return items
}

/** Query parameters as strings; one that is repeated counts as malformed. @throws Refusal bad_request */
export function parseQuery<T extends AnyObject>(schema: ObjectSchema<T>, query: URLSearchParams): T {
  const repeated = Object.keys(schema.fields).find((name) => query.getAll(name).length > 1)
  if (repeated !== undefined) throw new Refusal('bad_request', `${repeated} must be given once`)
  return parse(schema, Object.fromEntries(query))
}

// The building blocks of schemas, with messages that read after the field's path.

/** A string of `min` to `max` code points. */
export const text = ({ min = 0, max = Number.POSITIVE_INFINITY } = {}) =>
  string()
    .typeError('${path} must be a string')
    .test('length', `\${path} must have ${min} to ${max} characters`, (value) => {
      if (value === undefined) return true
      const length = codePoints(value)
      return length >= min && length <= max
    })

/** A string of at most `max` bytes in UTF-8. */
export const bytes = (max: number) =>
  string()
    .typeError('${path} must be a string')
    .test(
      'bytes',
      `\${path} must be at most ${max} bytes`,
      (value) => value === undefined || utf8Bytes(value) <= max,
    )

export const uuid = () =>
  string()
    .typeError('${path} must be a UUID')
    .test('uuid', '${path} must be a UUID', (value) => value === undefined || isUuid(value))

export const uuids = () =>
  array(uuid().defined('${path} must be a UUID').nonNullable('${path} must be a UUID')).typeError(
    '${path} must be an array of UUIDs',
  )

/** A map of string to string; any key is an ordinary one, `__proto__` too. */
export const stringMap = () =>
  mixed<Record<string, string>>().test(
    'map',
    '${path} must be an object whose values are strings',
    (value) => value === undefined || isPlainMap(value),
  )

export type Parsed<S extends ObjectSchema<AnyObject>> = InferType<S>
