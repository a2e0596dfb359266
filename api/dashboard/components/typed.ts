/**
 * Several values that people type into one field. Promises: a text with more of them than the field takes is refused
 * before it is taken apart. Pure.
 */

import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { TEXTS } from '../texts.ts'

/** How much of a line a refusal quotes, in characters. */
const MAX_QUOTED = 100

/**
 * The parts of a text, without empty ones: `most` counts those, too. @throws RequestError bad_request naming the field.
 */
export function partsTyped(
  typed: string,
  { field, between, most }: { field: string; between: RegExp; most: number },
): string[] {
  const parts = typed.split(between, most + 1)
  if (parts.length > most)
    throw invalidField(field, `must have at most ${most.toLocaleString('en-US')} parts`)
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

/** JSON as it was typed. @throws RequestError bad_request saying where it breaks. */
export function jsonTyped(source: string | null, what: string): unknown {
  try {
    return JSON.parse(source ?? '')
  } catch (error) {
    throw invalidField(what, `must be valid JSON: ${(error as Error).message}`)
  }
}

/** Lines of the form `name: value`. @throws RequestError bad_request naming the field and the line. */
export const namedLines = (typed: string, field: string, most: number): [name: string, value: string][] =>
  partsTyped(typed, { field, between: /\r?\n/, most }).map((line) => {
    const at = line.indexOf(':')
    if (at > 0) return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    const quoted = JSON.stringify(line.slice(0, MAX_QUOTED))
    throw invalidField(field, fill(TEXTS.notNamedLine, { line: quoted }))
  })
