/**
 * What every string from outside must satisfy before anything reads it: no NUL, no lone surrogate, and no nesting
 * without end. PostgreSQL could not store such text, and JSON.stringify would overflow on it.
 * Promises: linear time and a bounded stack for any input; lengths count as DECISIONS: Lengths.
 * Must not know fields, endpoints or error codes: callers word the refusal.
 */
/** The most that an html or text part may have, in bytes of UTF-8 (DECISIONS: Sizes). */
export const LARGEST_PART = 1024 * 1024

/**
 * How many variables a send gives at most, and so how many slots a template has. Measured: each 100,000 keys kept all
 * other requests waiting for 0.1 s.
 */
export const MAX_VARIABLES = 10_000

/** The first breach found: where (`contacts[3].email`, '' for the value itself), and what is wrong. */
type TextFault = { field: string; problem: string }

const DEEPEST_NESTING = 32
const LONGEST_KEY_SHOWN = 64

/**
 * The first string in parsed JSON, keys included, that cannot be stored, or the first container nested
 * deeper than 32 levels. DECISIONS: Text.
 */
export function textFault(value: unknown): TextFault | null {
  const fault = faultWithin(value, 0)
  return fault && { field: fault.keys.reduce<string>(pathTo, ''), problem: fault.problem }
}

const pathTo = (parent: string, key: string | number): string =>
  typeof key === 'string' ? memberPath(parent, key) : `${parent}[${key}]`

/** The first fault in document order, and the keys that lead to it. */
function faultWithin(value: unknown, depth: number): { keys: (string | number)[]; problem: string } | null {
  const problem = typeof value === 'string' ? stringProblem(value) : null
  if (problem !== null) return { keys: [], problem }
  if (typeof value !== 'object' || value === null) return null
  if (depth === DEEPEST_NESTING)
    return { keys: [], problem: `must not be nested deeper than ${DEEPEST_NESTING} levels` }
  const members = value as Readonly<Record<string | number, unknown>>
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    const odd = typeof key === 'string' ? stringProblem(key) : null
    const fault = odd === null ? faultWithin(members[key], depth + 1) : { keys: [], problem: odd }
    if (fault) return { ...fault, keys: [key, ...fault.keys] }
  }
  return null
}

/** Length in Unicode code points; a lone surrogate counts as one. */
export function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; count += 1) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return count
}

export const utf8Bytes = (text: string): number => Buffer.byteLength(text, 'utf8')

/** True for a JSON object whose every own value is a string. `__proto__` is a key like any other. */
export function isPlainMap(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return false
  return Object.values(value).every((member) => typeof member === 'string')
}

/** `parent.key`, or `parent["odd key"]` escaped and cut, so that a message stays printable and short. */
export function memberPath(parent: string, key: string): string {
  if (/^[\w-]{1,64}$/.test(key)) return parent === '' ? key : `${parent}.${key}`
  const shown = key.length > LONGEST_KEY_SHOWN ? `${key.slice(0, LONGEST_KEY_SHOWN)}…` : key
  const quoted = JSON.stringify(shown).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, escapeUnit)
  return `${parent}[${quoted}]`
}

/** Escapes the characters that JSON leaves raw although they do not print: DEL, C1 controls, U+2028, U+2029. */
const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * The text with what a terminal would obey, or would reorder it by, escaped as JSON does: controls but for line breaks,
 * and the marks of writing direction. JSON stays the same JSON.
 */
export const escapeControls = (text: string): string =>
  text.replace(/(?!\n)[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, escapeUnit)

function stringProblem(text: string): string | null {
  if (text.includes('\0')) return 'must not contain NUL characters'
  if (!text.isWellFormed()) return 'must not contain lone surrogates'
  return null
}

/** A UUID of any version, in either case. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)

/** What finds this text anywhere, as SQL's `like` reads it. */
export const likePattern = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`

/** What the message about a URL with a password says of it. */
export const PASSWORD_HINT = 'in the password, characters such as @ / # ? % are percent-encoded'

/** Percent-decoded text; null for what is no percent-encoded UTF-8. */
export function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** UTF-8 as text, without the mark that some editors put before it; null for bytes that are none. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** What JSON says; undefined for text that is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
