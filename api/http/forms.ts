/**
 * Parses forms and query strings in linear time. Fields are counted before any is parsed (DECISIONS: Forms). No other
 * module parses them, because Node's parser is quadratic for pairs without `=`.
 */

import { randomUUID } from 'node:crypto'
import { RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { textOfFile } from '../../db/validation/decode.ts'
import { TEXTS } from './texts.ts'

/** A broadcast's form contains up to 1,000 topics twice. */
const MAX_FIELDS = 2_000

export type Pair = [name: string, value: string]

const [AMPERSAND, EQUALS, PERCENT, PLUS, SPACE] = [0x26, 0x3d, 0x25, 0x2b, 0x20]

const DIGITS = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
)
const digit = (byte = 0): number => DIGITS[byte] ?? -1

const tooMany = () =>
  new RequestError('bad_request', fill(TEXTS.tooManyFields, { most: MAX_FIELDS.toLocaleString('en-US') }))

/** Invalid sequences don't change, as in browsers. */
function decoded(bytes: Buffer): string {
  if (!bytes.includes(PERCENT) && !bytes.includes(PLUS)) return bytes.toString()
  const plain = Buffer.allocUnsafe(bytes.length)
  let size = 0
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0
    const high = byte === PERCENT ? digit(bytes[at + 1]) : -1
    const low = high < 0 ? -1 : digit(bytes[at + 2])
    if (low >= 0) at += 2
    plain[size++] = low >= 0 ? high * 16 + low : byte === PLUS ? SPACE : byte
  }
  return plain.subarray(0, size).toString()
}

/** Skips empty pairs. @throws RequestError bad_request */
function rawPairs(bytes: Buffer): Buffer[] {
  const pairs: Buffer[] = []
  let from = 0
  for (let count = 0; from <= bytes.length; count += 1) {
    if (count >= MAX_FIELDS) throw tooMany()
    const found = bytes.indexOf(AMPERSAND, from)
    const end = found < 0 ? bytes.length : found
    if (end > from) pairs.push(bytes.subarray(from, end))
    from = end + 1
  }
  return pairs
}

function parsePair(raw: Buffer): Pair {
  const at = raw.indexOf(EQUALS)
  return at < 0 ? [decoded(raw), ''] : [decoded(raw.subarray(0, at)), decoded(raw.subarray(at + 1))]
}

/** @param search without its `?`. @throws RequestError bad_request, and what `check` throws */
export function readQuery(search: string, check?: (name: string, raw: string) => void): URLSearchParams {
  const pairs = rawPairs(Buffer.from(search)).map((raw): Pair => {
    const pair = parsePair(raw)
    check?.(pair[0], raw.toString())
    return pair
  })
  return toSearchParams(pairs)
}

/** Only the module that limits fields creates URLSearchParams (test/owners.test.ts). */
export const toSearchParams = (pairs: Pair[]): URLSearchParams => new URLSearchParams(pairs)

const URLENCODED = /^application\/x-www-form-urlencoded *(;|$)/i
const MULTIPART = /^multipart\/form-data[ \t]*;/i
const BOUNDARY = /;[ \t]*boundary=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))[ \t]*(?:;|$)/i
/** RFC 2046, section 5.1.1. */
const ANY_BOUNDARY = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/

export const isUrlencoded = (type: string): boolean => URLENCODED.test(type)

function parseBoundary(type: string): string | null {
  const [, quoted, token] = BOUNDARY.exec(type) ?? []
  const boundary = quoted?.replace(/\\(.)/g, '$1') ?? token ?? ''
  return ANY_BOUNDARY.test(boundary) ? boundary : null
}

const [TAB, LF, CR, DASH] = [0x09, 0x0a, 0x0d, 0x2d]

/** Returns the end of the delimiter at `at` and whether it is the last one, or null if `at` has none. */
function delimiterAt(text: Buffer, at: number, length: number): { end: number; last: boolean } | null {
  if (at > 0 && !(text[at - 2] === CR && text[at - 1] === LF)) return null
  let end = at + length
  if (text[end] === DASH && text[end + 1] === DASH) return { end, last: true }
  while (text[end] === SPACE || text[end] === TAB) end += 1
  return text[end] === CR && text[end + 1] === LF ? { end: end + 2, last: false } : null
}

/** Null if the last delimiter is missing. */
function splitParts(text: Buffer, boundary: string): Buffer[] | null {
  const delimiter = Buffer.from(`--${boundary}`)
  const parts: Buffer[] = []
  let from: number | null = null
  for (let at = text.indexOf(delimiter); at >= 0; at = text.indexOf(delimiter, at + 1)) {
    const found = delimiterAt(text, at, delimiter.length)
    if (!found) continue
    if (from !== null) parts.push(text.subarray(from, Math.max(from, at - 2)))
    if (parts.length > MAX_FIELDS) throw tooMany()
    if (found.last) return parts
    from = found.end
  }
  return null
}

/** Rewrites a form with a boundary that Node's parser accepts. It requires at least 27 characters and no padding. */
function rewritten(text: Buffer, boundary: string): { bytes: Buffer; boundary: string } | null {
  const parts = splitParts(text, boundary)
  if (parts === null) return null
  const own = `heliograph-${randomUUID()}`
  const pieces = parts.flatMap((part) => [Buffer.from(`--${own}\r\n`), part, Buffer.from('\r\n')])
  return { bytes: Buffer.concat([...pieces, Buffer.from(`--${own}--\r\n`)]), boundary: own }
}

/** A file becomes three fields: its text, `NAME_name` and `NAME_encoding`. @throws RequestError bad_request */
async function parseParts(type: string, bytes: Uint8Array<ArrayBuffer>): Promise<Pair[]> {
  const unreadable = () => new RequestError('bad_request', TEXTS.unreadableForm)
  const boundary = parseBoundary(type)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const form = boundary === null ? null : rewritten(text, boundary)
  if (form === null) throw unreadable()
  const headers = { 'Content-Type': `multipart/form-data; boundary="${form.boundary}"` }
  const parts = await new Response(form.bytes, { headers }).formData().catch(() => {
    throw unreadable()
  })
  const pairs = await Promise.all(
    [...parts].map(async ([name, value]): Promise<Pair[]> => {
      if (typeof value === 'string') return [[name, value]]
      const { text, encoding } = textOfFile(await value.bytes())
      return [
        [name, text],
        [`${name}_name`, value.name],
        [`${name}_encoding`, encoding],
      ]
    }),
  )
  return pairs.flat()
}

/** An empty body has no fields. @throws RequestError bad_request, unsupported_media_type */
export async function readForm(type: string, bytes: Uint8Array<ArrayBuffer>): Promise<Pair[]> {
  if (bytes.length === 0) return []
  if (isUrlencoded(type))
    return rawPairs(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).map(parsePair)
  if (MULTIPART.test(type)) return parseParts(type, bytes)
  throw new RequestError('unsupported_media_type', TEXTS.formType)
}
