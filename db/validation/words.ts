/**
 * Makes text from outside (a provider, a server, an error) safe to store, log and show. Pure.
 * Promises: PostgreSQL takes the result in text and in jsonb (no NUL, no lone surrogate, no pair cut in two). It is
 * one line of at most 500 code units, and holds none of the given secrets. Words for a log name nobody.
 */

const MAX_LENGTH = 500

const LONGEST_ID = 512

/** A counterpart's id as it can be stored and looked up; null for anything else, which then counts as no id. */
export const storableId = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_ID && storableWords(value) === value
    ? value
    : null

/** They make a line read as another one: nothing that a server has to say needs them. */
const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** What somebody sent, as text that can be stored: of its control characters only line breaks and tabs are left. */
export const storableText = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[^\P{Cc}\n\t]/gu, ' ')
    .replace(DIRECTION_MARKS, '')

/**
 * One line of the words: control characters and line ends become blanks, secrets become `***`, marks of writing
 * direction go first of all, so that none hides a secret.
 */
export function storableWords(text: string, secrets: readonly string[] = []): string {
  const known = secrets.filter((secret) => secret !== '')
  const plain = text.toWellFormed().replace(DIRECTION_MARKS, '')
  const masked = known.reduce((words, secret) => words.replaceAll(secret, '***'), plain)
  const line = masked.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()
  const cut = line.slice(0, MAX_LENGTH)
  return (cut.isWellFormed() ? cut : cut.slice(0, -1)).trimEnd()
}

const withoutPerson = (word: string): string =>
  word.includes('@') ? '…' : word.replaceAll(/\+?\d{8,}/g, '…')

/** Words for a log: without the addresses and numbers in them. */
export const impersonal = (words: string): string => words.replaceAll(/[^\s<>]+/g, withoutPerson)
