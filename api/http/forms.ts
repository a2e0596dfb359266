/**
 * Reads fields as forms and addresses bring them: application/x-www-form-urlencoded and multipart/form-data.
 * Promises: time in proportion to the bytes, whatever they are; pairs and parts are counted before any is read, and
 * more than MAX_FIELDS are refused (DECISIONS: Forms). Nobody else reads them: Node's own reader takes quadratic time
 * for pairs without `=`. Must not know a request.
 */

import { randomUUID } from 'node:crypto'
import { RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { textOfFile } from '../../db/validation/decode.ts'
import { TEXTS } from './texts.ts'

/** How many fields a form or an address has at most: a broadcast's form names 1,000 topics twice at worst. */
const MAX_FIELDS = 2_000

export type Pair = [name: string, value: string]

const [AMPERSAND, EQUALS, PERCENT, PLUS, SPACE] = [0x26, 0x3d, 0x25, 0x2b, 0x20]

/** What a byte says as a hexadecimal digit; -1: nothing. */
const DIGITS = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
)
const digit = (byte = 0): number => DIGITS[byte] ?? -1

const tooMany = () =>
  new RequestError('bad_request', fill(TEXTS.tooManyFields, { most: MAX_FIELDS.toLocaleString('en-US') }))

/** Percent-decoded; what is not properly encoded stays as it is, as browsers have it. */
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

/** The pairs as they came, without empty ones. @throws RequestError bad_request */
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

function pairOf(raw: Buffer): Pair {
  const at = raw.indexOf(EQUALS)
  return at < 0 ? [decoded(raw), ''] : [decoded(raw.subarray(0, at)), decoded(raw.subarray(at + 1))]
}

/**
 * The query of an address, without its `?`. @param check looks at each parameter's name and the pair as it came.
 * @throws RequestError bad_request, and what `check` throws
 */
export function readQuery(search: string, check?: (name: string, raw: string) => void): URLSearchParams {
  const pairs = rawPairs(Buffer.from(search)).map((raw): Pair => {
    const pair = pairOf(raw)
    check?.(pair[0], raw.toString())
    return pair
  })
  return toSearchParams(pairs)
}

/** Here, since only who bounds fields makes any (test/architecture.test.ts). */
export const toSearchParams = (pairs: Pair[]): URLSearchParams => new URLSearchParams(pairs)

const URLENCODED = /^application\/x-www-form-urlencoded *(;|$)/i
const MULTIPART = /^multipart\/form-data[ \t]*;/i
const BOUNDARY = /;[ \t]*boundary=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))[ \t]*(?:;|$)/i
/** RFC 2046, section 5.1.1. */
const ANY_BOUNDARY = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/

export const isUrlencoded = (type: string): boolean => URLENCODED.test(type)

/** The boundary that a Content-Type names; null for none that RFC 2046 allows. */
function boundaryOf(type: string): string | null {
  const [, quoted, token] = BOUNDARY.exec(type) ?? []
  const boundary = quoted?.replace(/\\(.)/g, '$1') ?? token ?? ''
  return ANY_BOUNDARY.test(boundary) ? boundary : null
}

const [TAB, LF, CR, DASH] = [0x09, 0x0a, 0x0d, 0x2d]

/** Where a delimiter that starts at `at` ends, and whether it is the last one; null if it is no delimiter. */
function delimiterAt(text: Buffer, at: number, length: number): { end: number; last: boolean } | null {
  if (at > 0 && !(text[at - 2] === CR && text[at - 1] === LF)) return null
  let end = at + length
  if (text[end] === DASH && text[end + 1] === DASH) return { end, last: true }
  while (text[end] === SPACE || text[end] === TAB) end += 1
  return text[end] === CR && text[end + 1] === LF ? { end: end + 2, last: false } : null
}

/** The parts between the delimiters, without what is before and after them; null without a last one. */
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

/** The same form with a boundary that the platform's reader takes: it wants 27 characters or more, and no padding. */
function rewritten(text: Buffer, boundary: string): { bytes: Buffer; boundary: string } | null {
  const parts = splitParts(text, boundary)
  if (parts === null) return null
  const own = `heliograph-${randomUUID()}`
  const pieces = parts.flatMap((part) => [Buffer.from(`--${own}\r\n`), part, Buffer.from('\r\n')])
  return { bytes: Buffer.concat([...pieces, Buffer.from(`--${own}--\r\n`)]), boundary: own }
}

/**
 * The parts of a form; a file is its text, with its name in a field of the same name and `_name`, and how it was
 * encoded in one with `_encoding`. @throws RequestError bad_request
 */
async function partsOf(type: string, bytes: Uint8Array<ArrayBuffer>): Promise<Pair[]> {
  const unreadable = () => new RequestError('bad_request', TEXTS.unreadableForm)
  const boundary = boundaryOf(type)
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

/** The fields of a form; none of an empty body. @throws RequestError bad_request, unsupported_media_type */
export async function readForm(type: string, bytes: Uint8Array<ArrayBuffer>): Promise<Pair[]> {
  if (bytes.length === 0) return []
  if (isUrlencoded(type))
    return rawPairs(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).map(pairOf)
  if (MULTIPART.test(type)) return partsOf(type, bytes)
  throw new RequestError('unsupported_media_type', TEXTS.formType)
}
