/** Parsers of CLI arguments: IDs, numbers, times, lists, files. Each throws a short error. */

import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { InvalidArgumentError } from 'commander'
import { LARGEST_FIGURE } from '../accounts/plans/limits.ts'
import { errorWords, requestError } from '../errors.ts'
import { parseAddress, parseMailbox } from '../validation/address.ts'
import { exampleMoment, isMoment } from '../validation/moments.ts'
import { normalisePhone } from '../validation/phone.ts'
import { isUuid, utf8Text } from '../validation/strings.ts'
import { TEXTS } from './texts.ts'

export function uuidArgument(text: string): string {
  if (isUuid(text)) return text.toLowerCase()
  throw new InvalidArgumentError('It must be a UUID.')
}

export function onOrOff(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on'
  throw new InvalidArgumentError('It must be on or off.')
}

/** Returns the identity of an email address, which all its spellings share. */
export function emailIdentity(text: string): string {
  const parsed = parseAddress(text.trim())
  if (parsed) return parsed.identity
  throw new InvalidArgumentError('It must be an email address.')
}

/** Returns a phone number in E.164 format, or the identity of an email address. */
export function addressOrPhone(text: string): string {
  const found = normalisePhone(text)?.e164 ?? parseAddress(text.trim())?.identity
  if (found) return found
  throw new InvalidArgumentError('It must be an email address, or a number such as +15551234567.')
}

/** A search text. An empty one, such as an unset variable in a script, would match everything. */
export function words(text: string): string {
  if (text.trim() !== '') return text
  throw new InvalidArgumentError('It must not be empty.')
}

export function mailboxes(text: string): string[] {
  const given = text.split(',').map((each) => each.trim())
  if (given.length <= 5 && given.every((each) => parseMailbox(each) !== null)) return given
  throw new InvalidArgumentError('It must be 1 to 5 email addresses, separated by commas.')
}

/** Creates a parser of numbers. @param form the description in its error. */
const numberReader =
  (written: RegExp, form: string, fits: (number: number) => boolean) =>
  (text: string): number => {
    const number = Number(text)
    if (written.test(text) && fits(number)) return number
    throw new InvalidArgumentError(`It must be ${form}.`)
  }

const WHOLE = /^\d+$/
const DECIMAL = /^\d+(\.\d+)?$/

export const count = numberReader(WHOLE, 'an integer, 0 or more', Number.isSafeInteger)

export const positive = numberReader(
  WHOLE,
  'an integer, 1 or more',
  (number) => Number.isSafeInteger(number) && number > 0,
)

/** Like `count`, up to the largest number in the database. */
export const limit = numberReader(
  WHOLE,
  `an integer from 0 to ${LARGEST_FIGURE}`,
  (number) => number <= LARGEST_FIGURE,
)

export const amount = numberReader(DECIMAL, 'a number, 0 or more', Number.isFinite)

/** Sends per second. */
export const rate = numberReader(
  DECIMAL,
  'a number above 0',
  (number) => Number.isFinite(number) && number > 0,
)

/** An RFC 3339 time, or a date, which means midnight UTC. Rejects dates that don't exist. */
export function instant(text: string): Date {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text
  if (isMoment(time)) return new Date(time)
  throw new InvalidArgumentError(`It must be a time such as ${exampleMoment(new Date())}.`)
}

/** An RFC 3339 time with a time zone. */
export function moment(text: string): Date {
  if (isMoment(text)) return new Date(text)
  throw new InvalidArgumentError(`It must be a time with a time zone, such as ${exampleMoment(new Date())}.`)
}

export const oneOf =
  <T extends string>(words: readonly T[]) =>
  (text: string): T => {
    const word = words.find((candidate) => candidate === text)
    if (word !== undefined) return word
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }

/** The description, parser and default of `--limit <n>`. */
export const atMost = (most: number) => ['how many to show', positive, most] as const

/** The description and parser of a filter with a fixed set of values. */
export const only = <T extends string>(words: readonly T[]) =>
  [`filter (choices: ${words.join(', ')})`, oneOf(words)] as const

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'file not found',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
}

const shownAs = (file: string): string => (file === '-' ? 'standard input' : file)

/**
 * Reads a text file, or standard input for `-`. @throws RequestError bad_request if it can't be read or isn't UTF-8.
 */
export async function fileText(name: string): Promise<string> {
  const shown = shownAs(name)
  const bytes = await (name === '-' ? buffer(process.stdin) : readFile(name)).catch(
    (error: NodeJS.ErrnoException) => {
      const reason = REASONS[error.code ?? ''] ?? error.message
      throw requestError('bad_request', TEXTS.cannotRead, { file: shown, reason })
    },
  )
  const text = utf8Text(bytes)
  if (text === null) throw requestError('bad_request', TEXTS.notText, { file: shown })
  return text
}

/** Reads a JSON file. @throws RequestError bad_request. */
export async function fileJson(name: string): Promise<unknown> {
  const text = await fileText(name)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw requestError('bad_request', TEXTS.notJson, { file: shownAs(name), reason: errorWords(error) })
  }
}
