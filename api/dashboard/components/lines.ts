/**
 * Reads and writes fields with one text per line. Stored texts survive the round trip: a text that a line
 * can't show exactly (outer spaces, line breaks, or an empty text) is written as a JSON string. If a field is
 * submitted unchanged, the stored value is kept. Pure.
 */

import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { parseJson } from '../../../db/validation/strings.ts'
import { TEXTS } from '../texts.ts'

const isPlain = (text: string): boolean =>
  text !== '' && text.trim() === text && !/[\r\n]/.test(text) && !text.startsWith('"')

export const formatLine = (text: string): string => (isPlain(text) ? text : JSON.stringify(text))

/** Returns the text of a line. A JSON string is parsed, and anything else is trimmed. */
export function parseLine(line: string): string {
  const typed = line.trim()
  const text = typed.startsWith('"') ? parseJson(typed) : typed
  return typeof text === 'string' ? text : typed
}

/** Returns the lines that aren't empty. @param most also counts empty ones. @throws RequestError bad_request. */
export function splitLines(typed: string, field: string, most: number): string[] {
  const lines = typed.split(/\r\n?|\n/, most + 1)
  if (lines.length > most) throw invalidField(field, `must have at most ${most} lines`)
  return lines.filter((line) => line.trim() !== '')
}

/** Formats a value of a list, whose values can also be separated by commas. */
export const formatListed = (text: string): string =>
  text.includes(',') ? JSON.stringify(text) : formatLine(text)

/**
 * Returns the values of a list, separated by line breaks or commas. A value in quotes can contain commas.
 * @param most the maximum number of lines.
 * @throws RequestError bad_request.
 */
export const splitListed = (typed: string, field: string, most: number): string[] =>
  splitLines(typed, field, most).flatMap((line) =>
    (line.match(/\s*"(?:[^"\\]|\\.)*"\s*(?=,|$)|[^,]+/g) ?? [])
      .filter((part) => part.trim() !== '')
      .map(parseLine),
  )

export const pairLine = ([name, text]: readonly [string, string]): string =>
  `${isPlain(name) && !name.includes(':') ? name : JSON.stringify(name)}: ${text === '' ? '' : formatLine(text)}`

/** Parses a line of the form `name: text`. @throws RequestError bad_request that quotes the line. */
export function parsePair(line: string, field: string): [string, string] {
  const quoted = /^\s*("(?:[^"\\]|\\.)*")\s*:(.*)$/s.exec(line)
  const [, name = '', text = ''] = quoted ?? /^([^:]+):(.*)$/s.exec(line) ?? []
  if (name.trim() !== '') return [parseLine(name), parseLine(text)]
  throw invalidField(field, fill(TEXTS.notNamedLine, { line: JSON.stringify(line.slice(0, 100)) }))
}

/** Normalizes line breaks, which browsers change in a multi-line field. */
const asLines = (text: string): string => text.replace(/\r\n?/g, '\n')

/** Returns the submitted value of a single-line field, trimmed, or the stored value if it is unchanged. */
export const keptOr = (sent: string, stored: string | undefined): string =>
  stored !== undefined && sent === stored.replace(/[\r\n]/g, '') ? stored : sent.trim()

/** Returns the submitted value of a multi-line field, or the stored value if it is unchanged. */
export const keptLinesOr = (sent: string, stored: string | undefined): string =>
  stored !== undefined && asLines(sent) === asLines(stored) ? stored : asLines(sent)

/** Returns the checked values, in the stored order if they are unchanged. */
export const tickedOr = (sent: string[], stored: readonly string[] = []): string[] =>
  new Set(sent).symmetricDifference(new Set(stored)).size === 0 ? [...stored] : sent
