/** Parses fields with several values. A text with too many parts is rejected before it is fully split. Pure. */

import { errorWords, invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { TEXTS } from '../texts.ts'

const MAX_QUOTED = 100

/**
 * Splits a text into its trimmed parts, without empty ones.
 * @param most the maximum number of parts, including empty ones.
 * @throws RequestError bad_request that names the field.
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

/** Parses JSON. @throws RequestError bad_request with the parser's message. */
export function jsonTyped(source: string | null, what: string): unknown {
  try {
    return JSON.parse(source ?? '')
  } catch (error) {
    throw invalidField(what, `must be valid JSON: ${errorWords(error)}`)
  }
}

/** Parses lines of the form `name: value`. @throws RequestError bad_request with the field and the line. */
export const namedLines = (typed: string, field: string, most: number): [name: string, value: string][] =>
  partsTyped(typed, { field, between: /\r?\n/, most }).map((line) => {
    const at = line.indexOf(':')
    if (at > 0) return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    const quoted = JSON.stringify(line.slice(0, MAX_QUOTED))
    throw invalidField(field, fill(TEXTS.notNamedLine, { line: quoted }))
  })
