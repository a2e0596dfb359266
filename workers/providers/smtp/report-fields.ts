/**
 * Parses the formats inside mail reports: groups of header-like fields (RFC 3464 §2.1, RFC 5965 §3), typed addresses
 * with their encodings (RFC 3461 §4, RFC 6533 §3), and dates. Pure, in linear time.
 */
import { addressIdentity, parseAddress } from '../../../db/validation/address.ts'

/** Fields by name in lower case. A repeated field keeps all its values. */
export type Fields = ReadonlyMap<string, readonly string[]>

/** Splits a text into groups of fields at empty lines, at most `most`. @throws Error beyond that. */
export function fieldGroups(text: string, most: number): Fields[] {
  const groups: Map<string, string[]>[] = []
  let open: Map<string, string[]> | null = null
  // Replaces what PostgreSQL can't store. Removing it could produce another address.
  const clean = text.replace(/[^\P{Cc}\t\r\n]/gu, '\ufffd')
  for (const line of unfold(clean)) {
    const [, name, value = ''] = /^([!-9;-~]{1,76})[ \t]*:(.*)$/s.exec(line) ?? []
    if (line.trim() === '') open = null
    else if (name !== undefined) {
      if (open === null) {
        open = new Map()
        groups.push(open)
      }
      if (groups.length > most) throw new Error(`the report has more than ${most} parts`)
      const key = name.toLowerCase()
      const values = open.get(key)
      if (values) values.push(value.trim())
      else open.set(key, [value.trim()])
    }
  }
  return groups
}

function unfold(text: string): string[] {
  const lines: string[] = []
  for (const line of text.split(/\r\n|\n|\r/)) {
    const last = lines.length - 1
    // A line of only spaces ends a group.
    if (/^[ \t]+\S/.test(line) && last >= 0 && lines[last] !== '') lines[last] += ` ${line.trim()}`
    else lines.push(line)
  }
  return lines
}

/** Returns the first value of a field. '' without one. */
export const field = (fields: Fields, name: string): string => fields.get(name)?.[0] ?? ''

const MAX_ADDRESS_CHARACTERS = 254

/** Returns the address of a field such as `rfc822; ana@example.org`. Null if it is empty. */
export function parseFieldAddress(typed: string): string | null {
  const cut = typed.indexOf(';')
  const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()
  const words = bare(cut < 0 ? typed : typed.slice(cut + 1))
  const address = type === 'utf-8' ? decodeUnicode(words) : words
  return address === '' ? null : address.slice(0, MAX_ADDRESS_CHARACTERS).toWellFormed()
}

function bare(words: string): string {
  const trimmed = words.trim()
  const inner = /^<([^<>]*)>/.exec(trimmed)?.[1]
  return inner ?? trimmed.split(/[ \t]/, 1)[0] ?? ''
}

/** RFC 6533 §3: `\x{5E7F}` escapes a character that must not appear literally. */
const decodeUnicode = (words: string): string =>
  words.replace(/\\x\{([0-9a-f]{2,6})\}/gi, (escaped, digits: string) => {
    const code = Number.parseInt(digits, 16)
    return code > 0x1f && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
      ? String.fromCodePoint(code)
      : escaped
  })

/**
 * Returns the recipient as the sender wrote it: the original one if present, otherwise the final one. Some servers
 * leave the original in xtext, which escapes `+` and `=`; the final one shows which spelling is meant.
 */
export function pickRecipient(original: string, final: string): string | null {
  const written = parseFieldAddress(original)
  const arrived = parseFieldAddress(final)
  if (written === null) return arrived
  const decoded = written.replaceAll('+2B', '+').replaceAll('+3D', '=')
  if (decoded === written || parseAddress(decoded) === null) return written
  return arrived !== null && isSame(arrived, written) ? written : decoded
}

const isSame = (one: string, other: string): boolean =>
  parseAddress(one) !== null &&
  parseAddress(other) !== null &&
  addressIdentity(one) === addressIdentity(other)

/**
 * Returns the first readable date before `latest`, otherwise `latest`, when the report came. Dates in mail omit
 * fractions, so the end of the second is used. Nothing then seems to precede its cause.
 */
export function parseTime(dates: readonly string[], latest: Date): Date {
  for (const text of dates) {
    // Date.parse reads RFC 5322 dates but not the comments after them.
    const time = Date.parse(text.slice(0, 100).replace(/\([^()]*\)/g, ''))
    if (time > EARLIEST_PLAUSIBLE && time <= latest.getTime())
      return new Date(Math.min(time + 999, latest.getTime()))
  }
  return latest
}

const EARLIEST_PLAUSIBLE = Date.UTC(2000)
