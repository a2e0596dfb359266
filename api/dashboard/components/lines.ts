/**
 * Texts that people type one a line. Promises: what is stored comes back as it was: a text that a line cannot show
 * exactly (outer blanks, line breaks, nothing at all) stands there in quotes, as JSON writes it; what a whole field
 * cannot show exactly is left as it is. Pure.
 */

import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { jsonOf } from '../../../db/validation/strings.ts'
import { TEXTS } from '../texts.ts'

const isPlain = (text: string): boolean =>
  text !== '' && text.trim() === text && !/[\r\n]/.test(text) && !text.startsWith('"')

export const lineOf = (text: string): string => (isPlain(text) ? text : JSON.stringify(text))

/** The text that a line stands for: what is typed in quotes, or else the line without outer blanks. */
export function textOf(line: string): string {
  const typed = line.trim()
  const text = typed.startsWith('"') ? jsonOf(typed) : typed
  return typeof text === 'string' ? text : typed
}

/** Lines that say something. @param most how many there may be, empty ones too. @throws RequestError bad_request. */
export function linesOf(typed: string, field: string, most: number): string[] {
  const lines = typed.split(/\r\n?|\n/, most + 1)
  if (lines.length > most) throw invalidField(field, `must have at most ${most} lines`)
  return lines.filter((line) => line.trim() !== '')
}

/** A name and its text as one line, `name: text`. */
export const pairLine = ([name, text]: readonly [string, string]): string =>
  `${isPlain(name) && !name.includes(':') ? name : JSON.stringify(name)}: ${text === '' ? '' : lineOf(text)}`

/** The name and the text of a line. @throws RequestError bad_request naming it. */
export function pairOf(line: string, field: string): [string, string] {
  const quoted = /^\s*("(?:[^"\\]|\\.)*")\s*:(.*)$/s.exec(line)
  const [, name = '', text = ''] = quoted ?? /^([^:]+):(.*)$/s.exec(line) ?? []
  if (name.trim() !== '') return [textOf(name), textOf(text)]
  throw invalidField(field, fill(TEXTS.notNamedLine, { line: JSON.stringify(line.slice(0, 100)) }))
}

/** A text as a browser sends it from a field of one line: without its line breaks. */
const asLine = (text: string): string => text.replace(/[\r\n]/g, '')

/** The same from a field of several: its line breaks are all of one kind. */
const asLines = (text: string): string => text.replace(/\r\n?/g, '\n')

/** A field of one line as it was sent, without outer blanks; what is stored where nobody has changed it. */
export const keptOr = (sent: string, stored: string | undefined): string =>
  stored !== undefined && sent === asLine(stored) ? stored : sent.trim()

/** A field of several lines as it was sent; what is stored where nobody has changed it. */
export const keptLinesOr = (sent: string, stored: string | undefined): string =>
  stored !== undefined && asLines(sent) === asLines(stored) ? stored : asLines(sent)

/** What was ticked; in the order that is stored where nobody has changed it. */
export const tickedOr = (sent: string[], stored: readonly string[] = []): string[] =>
  new Set(sent).symmetricDifference(new Set(stored)).size === 0 ? [...stored] : sent
