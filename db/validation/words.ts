/** Makes text from outside (a provider, a server, an error) safe to store, log and show. Pure. */

const MAX_LENGTH = 500

const LONGEST_ID = 512

/** Returns a provider's ID if it can be stored and looked up, or null. Callers treat null as no ID. */
export const storableId = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_ID && storableWords(value) === value
    ? value
    : null

/** Marks of writing direction, which can make a line look like another one. */
const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Removes control characters except line breaks and tabs, so that the text can be stored. */
export const storableText = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[^\P{Cc}\n\t]/gu, ' ')
    .replace(DIRECTION_MARKS, '')

/**
 * Returns one line of up to 500 code units that PostgreSQL can store as text and as jsonb. Control characters and
 * line breaks become spaces, and secrets become `***`. Marks of writing direction are removed first, so that they
 * can't hide a secret.
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

/** Removes email addresses and phone numbers, for logs. */
export const impersonal = (words: string): string => words.replaceAll(/[^\s<>]+/g, withoutPerson)
