/**
 * What is in the bytes that a client sent over HTTP (read-body.ts): bodies of JSON, batches and query strings. What a
 * field may hold is db/validation/fields.ts.
 * Must not know any resource.
 */

import type { AnyObject, ObjectSchema } from 'yup'
import { RequestError, resultOrError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { type Described, isObject, parse, text } from '../../db/validation/fields.ts'
import { percentDecoded, utf8Text } from '../../db/validation/strings.ts'
import { readQuery } from './forms.ts'
import { TEXTS } from './texts.ts'

/**
 * The most of what JSON holds, since parsed it takes up to fifty times its length in memory: strings (keys too), arrays
 * and objects together, of which 1,000 contacts with 100 properties each have two thirds; and values in all, which the
 * bytes of a file as a Buffer are.
 */
export const MAX_JSON_STRINGS = 300_000
export const MAX_JSON_VALUES = 3_000_000
/** What a string, array or object takes at least, in bytes. */
const MIN_JSON_BYTES = 2

/**
 * What the shape makes of a body. Its text is one that PostgreSQL can store whatever it says, since a NUL or a lone
 * surrogate is only there as an escape. @throws RequestError bad_request, payload_too_large, and what the shape
 * refuses.
 */
export function parseBody<B>(shape: BodyShape<B>, bytes: Uint8Array): B {
  if (bytes.length === 0 && shape.optional) return shape.read({})
  if (bytes.length === 0) throw new RequestError('bad_request', TEXTS.noBody)
  return shape.read(parseJson(bytes))
}

const [QUOTE, BACKSLASH, OPEN_LIST, OPEN_OBJECT, COMMA] = Buffer.from('"\\[{,') as unknown as number[]

/** Counts what begins in JSON that need not be valid. @throws RequestError payload_too_large */
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
  const refuse = (most: number, what: string): never => {
    throw new RequestError(
      'payload_too_large',
      fill(TEXTS.tooMany, { most: most.toLocaleString('en'), things: what }),
    )
  }
  if (strings > MAX_JSON_STRINGS) refuse(MAX_JSON_STRINGS, 'strings, arrays and objects')
  if (values > MAX_JSON_VALUES) refuse(MAX_JSON_VALUES, 'values')
}

function parseJson(bytes: Uint8Array): unknown {
  checkCounts(bytes)
  const text = utf8Text(bytes)
  if (text === null) throw new RequestError('bad_request', TEXTS.notUtf8)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new RequestError('bad_request', fill(TEXTS.notJson, { reason: jsonFault(error as Error) }))
  }
}

/** What V8 says of broken JSON, but for what it quotes of it. Where it names the place, it quotes nothing. */
function jsonFault({ message }: Error): string {
  const [, words, place] =
    /^(.+?)(?: in JSON)? at position \d+ (\(line \d+ column \d+\))$/.exec(message) ?? []
  if (words !== undefined) return `${words} ${place}`
  return message === 'Unexpected end of JSON input' ? message : 'Unexpected token'
}

/** Without the mark that some editors put before UTF-8; `utf8Text` leaves it out too. */
export const withoutByteOrderMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? bytes.subarray(3) : bytes

/**
 * What a route takes in its body, as a value: its handler gets what `read` makes of it, and the API's description
 * walks over `schema`. In a batch `schema` is an item's.
 */
export type BodyShape<B> = {
  schema: Fields
  batch: { field: string; most: number } | null
  /** Whether the call may come without a body: it is read as an empty object then. */
  optional?: true
  /** @throws RequestError what is wrong with the whole call */
  read(value: unknown): B
  /** For who needs the body as it came: it is valid, and has not travelled to the parser's thread and back. */
  withBytes?(body: B, bytes: Buffer): B
}

export type QueryShape<Q> = { schema: Fields; read(url: string): Q }

type Fields = Pick<ObjectSchema<AnyObject>, 'fields' | 'describe'>

export const json = <T extends AnyObject>(schema: ObjectSchema<T>): BodyShape<T> => ({
  schema,
  batch: null,
  read: (value) => parse(schema, value),
})

/** As `json`, made into something else. @param make throws the refusal of what the schema cannot say. */
export const jsonAs = <T extends AnyObject, R>(
  schema: ObjectSchema<T>,
  make: (value: unknown) => R,
): BodyShape<R> => ({ schema, batch: null, read: (value) => make(value) })

/** As `json`, where no body is as good as an empty object. */
export const optionalJson = <T extends AnyObject>(schema: ObjectSchema<T>): BodyShape<T> => ({
  ...json(schema),
  optional: true,
})

/**
 * A JSON object with a list of items, each with its own outcome.
 * @param make makes an item, or throws its refusal. @param path where the item lies, such as `emails[3]`.
 */
export const batchOf = <T extends AnyObject, R>(
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

export const queryOf = <T extends AnyObject>(schema: ObjectSchema<T>): QueryShape<T> => ({
  schema,
  read: (url) => parseQuery(schema, url),
})

/** The items of a batch. @throws RequestError bad_request, batch_too_large */
export function parseBatch(body: unknown, field: string, limit: number): unknown[] {
  const items = isObject(body) ? body[field] : undefined
  if (!isObject(body))
    throw new RequestError('bad_request', { field: 'the body', problem: 'must be an object' })
  if (!Array.isArray(items)) throw new RequestError('bad_request', { field, problem: 'must be an array' })
  if (items.length > limit)
    throw new RequestError('batch_too_large', { field, problem: `must have at most ${limit} items` })
  return items
}

/**
 * Query parameters as strings; one that is repeated, or is no percent-encoded UTF-8, counts as malformed.
 * @param url the request's own, with its query as it came. @throws RequestError bad_request
 */
function parseQuery<T extends AnyObject>(schema: ObjectSchema<T>, url: string): T {
  const search = url.slice(url.indexOf('?') + 1 || url.length)
  const query = readQuery(search, (name, raw) => {
    if (!Object.hasOwn(schema.fields, name) || percentDecoded(raw) !== null) return
    throw new RequestError('bad_request', { field: name, problem: 'must be percent-encoded UTF-8' })
  })
  const repeated = Object.keys(schema.fields).find((name) => query.getAll(name).length > 1)
  if (repeated !== undefined)
    throw new RequestError('bad_request', { field: repeated, problem: 'must be given once' })
  return parse(schema, Object.fromEntries(query))
}

/** A whole number in a query string: digits only, `from` to `to`. */
export const wholeNumber = (from: number, to: number) =>
  text()
    .meta({ jsonSchema: { type: 'integer', minimum: from, maximum: to } } satisfies Described)
    .test('whole number', `must be a whole number from ${from} to ${to}`, (value) => {
      if (value === undefined) return true
      return /^\d{1,16}$/.test(value) && Number(value) >= from && Number(value) <= to
    })
