/**
 * Rejects strings that we can't store: no NUL, no lone surrogate, and no JSON nested too deeply. PostgreSQL couldn't
 * store such text, and JSON.stringify would overflow. Linear time and bounded stack for any input. Lengths count as
 * in DECISIONS: Lengths.
 */
/** The largest HTML or text part, in bytes of UTF-8 (DECISIONS: Sizes). */
export const LARGEST_PART = 1024 * 1024

/**
 * The most variables in a send, and in a template. Measured: each 100,000 keys blocked all other requests for 0.1 s.
 */
export const MAX_VARIABLES = 10_000

/** `field` is the path (`contacts[3].email`), or '' for the value itself. */
type TextFault = { field: string; problem: string }

const DEEPEST_NESTING = 32
const LONGEST_KEY_SHOWN = 64

/**
 * Returns the first string in parsed JSON, keys included, that can't be stored, or the first container nested deeper
 * than 32 levels. DECISIONS: Text.
 */
export function textFault(value: unknown): TextFault | null {
  const fault = faultWithin(value, 0)
  return fault && { field: fault.keys.reduce<string>(pathTo, ''), problem: fault.problem }
}

const pathTo = (parent: string, key: string | number): string =>
  typeof key === 'string' ? memberPath(parent, key) : `${parent}[${key}]`

/** Returns the first fault in document order, and the keys that lead to it. */
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

/** Returns the length in Unicode code points. A lone surrogate counts as one. */
export function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; count += 1) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return count
}

export const utf8Bytes = (text: string): number => Buffer.byteLength(text, 'utf8')

/** True for a JSON object whose own values are all strings. `__proto__` is an ordinary key. */
export function isPlainMap(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return false
  return Object.values(value).every((member) => typeof member === 'string')
}

/** Returns `parent.key`, or `parent["odd key"]` escaped and truncated, so that messages stay printable and short. */
export function memberPath(parent: string, key: string): string {
  if (/^[\w-]{1,64}$/.test(key)) return parent === '' ? key : `${parent}.${key}`
  const shown = key.length > LONGEST_KEY_SHOWN ? `${key.slice(0, LONGEST_KEY_SHOWN)}…` : key
  const quoted = JSON.stringify(shown).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, escapeUnit)
  return `${parent}[${quoted}]`
}

/** Escapes unprintable characters that JSON doesn't escape: DEL, C1 controls, U+2028 and U+2029. */
const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * Escapes, as JSON does, characters that a terminal would interpret: control characters except line breaks, and marks
 * of writing direction. Escaped JSON is still the same JSON.
 */
export const escapeControls = (text: string): string =>
  text.replace(/(?!\n)[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, escapeUnit)

function stringProblem(text: string): string | null {
  if (text.includes('\0')) return 'must not contain NUL characters'
  if (!text.isWellFormed()) return 'must not contain lone surrogates'
  return null
}

/** True for a UUID of any version, in either case. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)

/** Returns an SQL `like` pattern that finds the text anywhere. */
export const likePattern = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`

/** A hint for errors about URLs with a password. */
export const PASSWORD_HINT = 'Percent-encode characters such as @ / # ? % in the password'

/** Returns the decoded text, or null if it isn't percent-encoded UTF-8. */
export function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Decodes UTF-8 and drops a byte order mark. Returns null if it isn't UTF-8. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Parses JSON. Returns undefined if it is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
