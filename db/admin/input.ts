/**
 * Readers of what is typed after a verb: ids, numbers, times, lists, files.
 * Promises: each either gives a value of its type or says in a few words what it must be.
 */
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { InvalidArgumentError } from 'commander'
import { LARGEST_FIGURE } from '../accounts/plans/figures.ts'
import { Refusal } from '../errors.ts'
import { parseAddress, parseMailbox } from '../text/address.ts'
import { isMoment } from '../text/moments.ts'
import { isUuid } from '../text/strings.ts'

const INSTANT = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/

export function uuidArgument(text: string): string {
  if (isUuid(text)) return text.toLowerCase()
  throw new InvalidArgumentError('It must be a UUID.')
}

/** An email address, as what makes two spellings one. */
export function emailIdentity(text: string): string {
  const parsed = parseAddress(text.trim())
  if (parsed) return parsed.identity
  throw new InvalidArgumentError('It must be an email address.')
}

export function mailboxes(text: string): string[] {
  const given = text.split(',').map((each) => each.trim())
  if (given.length <= 5 && given.every((each) => parseMailbox(each) !== null)) return given
  throw new InvalidArgumentError('It must be 1 to 5 email addresses, separated by commas.')
}

export function count(text: string): number {
  const number = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(number)) return number
  throw new InvalidArgumentError('It must be a whole number, 0 or more.')
}

/** As `count`, from 1 on. */
export function positive(text: string): number {
  const number = count(text)
  if (number > 0) return number
  throw new InvalidArgumentError('It must be a whole number, 1 or more.')
}

/** As `count`, up to what the database holds. */
export function limit(text: string): number {
  const number = count(text)
  if (number <= LARGEST_FIGURE) return number
  throw new InvalidArgumentError(`It must be a whole number from 0 to ${LARGEST_FIGURE}.`)
}

/** A number, 0 or more, with a fraction or without. */
export function amount(text: string): number {
  const number = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && Number.isFinite(number)) return number
  throw new InvalidArgumentError('It must be a number, 0 or more.')
}

/** A number of sends per second, above 0. */
export function rate(text: string): number {
  const number = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && Number.isFinite(number) && number > 0) return number
  throw new InvalidArgumentError('It must be a number above 0.')
}

/** An RFC 3339 time, or a date, which begins at midnight UTC. Impossible dates are refused. */
export function instant(text: string): Date {
  const [, day] = INSTANT.exec(text) ?? []
  const time = new Date(text)
  const exists = day !== undefined && new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day)
  if (exists && !Number.isNaN(time.getTime())) return time
  throw new InvalidArgumentError('It must be a time such as 2026-01-31T00:00:00Z.')
}

/** An RFC 3339 time with its zone. */
export function moment(text: string): Date {
  if (isMoment(text)) return new Date(text)
  throw new InvalidArgumentError('It must be a time with its zone, such as 2026-01-31T09:00:00Z.')
}

/** One of some words. */
export const oneOf =
  <T extends string>(words: readonly T[]) =>
  (text: string): T => {
    const word = words.find((candidate) => candidate === text)
    if (word !== undefined) return word
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'it may not be read',
  EISDIR: 'it is a directory',
}

/** A file's text; `-` reads standard input. @throws Refusal bad_request when it cannot be read or is no UTF-8. */
export async function fileText(name: string): Promise<string> {
  const shown = name === '-' ? 'standard input' : name
  const bytes = await (name === '-' ? buffer(process.stdin) : readFile(name)).catch(
    (error: NodeJS.ErrnoException) => {
      const reason = REASONS[error.code ?? ''] ?? error.message
      throw new Refusal('bad_request', `cannot read ${shown}: ${reason}`)
    },
  )
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Refusal('bad_request', `${shown} is not text in UTF-8`)
  }
}

/** A file's JSON value. @throws Refusal bad_request. */
export async function fileJson(name: string): Promise<unknown> {
  const text = await fileText(name)
  try {
    return JSON.parse(text)
  } catch (error) {
    const shown = name === '-' ? 'standard input' : name
    throw new Refusal('bad_request', `${shown} is not JSON: ${error instanceof Error ? error.message : ''}`)
  }
}
