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
export const MOST_VARIABLES = 10_000

/** The first breach found: where (`contacts[3].email`, '' for the value itself) and what, after a "must". */
type TextFault = { path: string; problem: string }

const DEEPEST_NESTING = 32
const LONGEST_KEY_SHOWN = 64

/** One open container on the way to the value under inspection; `at` is the member being looked at. */
type Frame = {
  members: Readonly<Record<string | number, unknown>>
  keys: string[] | null
  length: number
  at: number
}

/**
 * The first string in parsed JSON, keys included, that cannot be stored, or the first container nested
 * deeper than 32 levels. DECISIONS: Text.
 */
export function textFault(value: unknown): TextFault | null {
  const open: Frame[] = []
  let current = value
  for (;;) {
    if (typeof current === 'string') {
      const problem = stringProblem(current)
      if (problem !== null) return { path: pathOf(open), problem }
    } else if (typeof current === 'object' && current !== null) {
      if (open.length === DEEPEST_NESTING) {
        return { path: pathOf(open), problem: `must not be nested deeper than ${DEEPEST_NESTING} levels` }
      }
      open.push(frameOf(current))
    }
    const frame = advance(open)
    if (frame === null) return null
    const key = frame.keys === null ? frame.at : (frame.keys[frame.at] ?? '')
    if (typeof key === 'string') {
      const problem = stringProblem(key)
      if (problem !== null) return { path: pathOf(open), problem }
    }
    current = frame.members[key]
  }
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

function frameOf(container: object): Frame {
  const keys = Array.isArray(container) ? null : Object.keys(container)
  const length = Array.isArray(container) ? container.length : (keys?.length ?? 0)
  return { members: container as Frame['members'], keys, length, at: -1 }
}

/** Steps to the next member in document order, closing what is finished; null at the end. */
function advance(open: Frame[]): Frame | null {
  for (let frame = open.at(-1); frame !== undefined; frame = open.at(-1)) {
    frame.at += 1
    if (frame.at < frame.length) return frame
    open.pop()
  }
  return null
}

function pathOf(open: readonly Frame[]): string {
  let path = ''
  for (const { keys, at } of open) path = keys === null ? `${path}[${at}]` : memberPath(path, keys[at] ?? '')
  return path
}

/** A UUID of any version, in either case. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)

/** What finds this text anywhere, as SQL's `like` reads it. */
export const likePattern = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`

/** Percent-decoded text; null for what is no percent-encoded UTF-8. */
export function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
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
