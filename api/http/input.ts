/** Parses JSON bodies, batches and query strings. db/validation/fields.ts validates the fields. */

import type { AnyObject, ObjectSchema } from 'yup'
import { errorWords, invalidField, RequestError, resultOrError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { type Described, isObject, parse, text } from '../../db/validation/fields.ts'
import { percentDecoded, utf8Text } from '../../db/validation/strings.ts'
import { readQuery } from './forms.ts'
import { TEXTS } from './texts.ts'

/**
 * Limits for JSON, because parsed JSON can need fifty times its length in memory. The first one is for strings
 * (including keys), arrays and objects together. 1,000 contacts with 100 properties each have two thirds of it. The
 * second one is for all values, such as the bytes of a file as a Buffer.
 */
export const MAX_JSON_STRINGS = 300_000
export const MAX_JSON_VALUES = 3_000_000
const MIN_JSON_BYTES = 2

/**
 * PostgreSQL can store the text, because NUL characters and lone surrogates only occur as escapes.
 * @throws RequestError bad_request, payload_too_large, and the shape's own errors
 */
export function parseBody<B>(shape: BodyShape<B>, bytes: Uint8Array): B {
  if (bytes.length === 0 && shape.optional) return shape.read({})
  if (bytes.length === 0) throw new RequestError('bad_request', TEXTS.noBody)
  return shape.read(parseJson(bytes))
}

const [QUOTE, BACKSLASH, OPEN_LIST, OPEN_OBJECT, COMMA] = Buffer.from('"\\[{,') as unknown as number[]

/** The JSON may be invalid. @throws RequestError payload_too_large */
function checkCounts(bytes: Uint8Array): void {
  if (bytes.length <= MAX_JSON_STRINGS * MIN_JSON_BYTES) return
  let [strings, values] = [0, 1]
  let isInString = false
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (isInString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isInString = false
    } else if (byte === COMMA) {
      values += 1
    } else if (byte === QUOTE || byte === OPEN_LIST || byte === OPEN_OBJECT) {
      strings += 1
      isInString = byte === QUOTE
    }
  }
  const tooMany = (most: number, things: string): RequestError =>
    new RequestError('payload_too_large', fill(TEXTS.tooMany, { most: most.toLocaleString('en'), things }))
  if (strings > MAX_JSON_STRINGS) throw tooMany(MAX_JSON_STRINGS, 'strings, arrays and objects')
  if (values > MAX_JSON_VALUES) throw tooMany(MAX_JSON_VALUES, 'values')
}

function parseJson(bytes: Uint8Array): unknown {
  checkCounts(bytes)
  const text = utf8Text(bytes)
  if (text === null) throw new RequestError('bad_request', TEXTS.notUtf8)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new RequestError('bad_request', fill(TEXTS.notJson, { reason: jsonFault(error) }))
  }
}

/** Returns V8's message about invalid JSON without the text that it quotes. Messages with a position quote nothing. */
function jsonFault(error: unknown): string {
  const message = errorWords(error)
  const [, words, place] =
    /^(.+?)(?: in JSON)? at position \d+ (\(line \d+ column \d+\))$/.exec(message) ?? []
  if (words !== undefined) return `${words} ${place}`
  return message === 'Unexpected end of JSON input' ? message : 'Unexpected token'
}

/** Removes the byte order mark, as `utf8Text` does. */
export const withoutByteOrderMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? bytes.subarray(3) : bytes

/** The body that a route accepts. `schema` describes it in the API's description, or an item if it is a batch. */
export type BodyShape<B> = {
  schema: Fields
  batch: { field: string; most: number } | null
  optional?: true
  /** @throws RequestError for an error that isn't about one item */
  read(value: unknown): B
  /** Adds the raw bytes for handlers that need them. They aren't copied back from the parser's thread. */
  withBytes?(body: B, bytes: Buffer): B
}

export type QueryShape<Q> = { schema: Fields; read(url: string): Q }

type Fields = Pick<ObjectSchema<AnyObject>, 'fields' | 'describe'>

export const json = <T extends AnyObject>(schema: ObjectSchema<T>): BodyShape<T> => ({
  schema,
  batch: null,
  read: (value) => parse(schema, value),
})

/** @param make validates and converts the value. Throws RequestError. */
export const jsonAs = <T extends AnyObject, R>(
  schema: ObjectSchema<T>,
  make: (value: unknown) => R,
): BodyShape<R> => ({ schema, batch: null, read: make })

/** Like `json`, but an empty body is read as an empty object. */
export const optionalJson = <T extends AnyObject>(schema: ObjectSchema<T>): BodyShape<T> => ({
  ...json(schema),
  optional: true,
})

/**
 * A list of items in an object. Each item has its own result.
 * @param make converts an item or throws its error. It also gets the item's path, such as `emails[3]`.
 */
export const defineBatch = <T extends AnyObject, R>(
  { field, most, schema }: { field: string; most: number; schema: ObjectSchema<T> },
  make: (value: unknown, path: string) => R,
): BodyShape<(R | RequestError)[]> => ({
  schema,
  batch: { field, most },
  read: (value) =>
    parseBatch(value, field, most).map((item, index) =>
      resultOrError(() => make(item, `${field}[${index}]`)),
    ),
})

export const defineQuery = <T extends AnyObject>(schema: ObjectSchema<T>): QueryShape<T> => ({
  schema,
  read: (url) => parseQuery(schema, url),
})

/** @throws RequestError bad_request, batch_too_large */
export function parseBatch(body: unknown, field: string, limit: number): unknown[] {
  const items = isObject(body) ? body[field] : undefined
  if (!isObject(body)) throw invalidField('The request body', 'must be an object')
  if (!Array.isArray(items)) throw invalidField(field, 'must be an array')
  if (items.length > limit)
    throw new RequestError('batch_too_large', { field, problem: `must have at most ${limit} items` })
  return items
}

/** Each parameter may occur only once. @param url with its raw query. @throws RequestError bad_request */
function parseQuery<T extends AnyObject>(schema: ObjectSchema<T>, url: string): T {
  const search = url.slice(url.indexOf('?') + 1 || url.length)
  const query = readQuery(search, (name, raw) => {
    if (Object.hasOwn(schema.fields, name) && percentDecoded(raw) === null)
      throw invalidField(name, 'must be percent-encoded UTF-8')
  })
  const repeated = Object.keys(schema.fields).find((name) => query.getAll(name).length > 1)
  if (repeated !== undefined) throw invalidField(repeated, 'must be given once')
  return parse(schema, Object.fromEntries(query))
}

/** @param problem what is wrong with other values. */
export const wholeNumber = (
  from: number,
  to: number,
  problem = `must be a whole number from ${from} to ${to}`,
) =>
  text()
    .meta({ jsonSchema: { type: 'integer', minimum: from, maximum: to } } satisfies Described)
    .test('whole number', problem, (value) => {
      if (value === undefined) return true
      return /^\d{1,16}$/.test(value) && Number(value) >= from && Number(value) <= to
    })
