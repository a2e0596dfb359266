/** Recognizes an address in stored data, for erase.ts and export.ts, so that both find the same. Pure. */
import { domainToUnicode } from 'node:url'
import { parsedAddress, parseMailbox } from '../../validation/address.ts'
import { ERASED } from '../../validation/addressees.ts'
import type { FoundEmail } from './person.sql.ts'

export type ErasedPerson = {
  teamId: string
  identity: string
  /** The identity as recipients may have it. */
  spellings: readonly string[]
  /** A PostgreSQL regular expression that matches the complete address in a text. */
  pattern: string
  /** The same for bytes that are written as `encode(…, 'escape')` writes them. */
  bytesPattern: string
}

/** Returns the spellings of an identity: with its domain in ASCII form, or in letters. */
function listSpellings(identity: string): string[] {
  const at = identity.lastIndexOf('@')
  const inLetters = `${identity.slice(0, at + 1)}${domainToUnicode(identity.slice(at + 1))}`
  return [...new Set([identity, inLetters])]
}

const literally = (text: string): string => text.replace(/[!-/:-@[-`{-~]/g, '\\$&')

/** Bytes as `encode(…, 'escape')` writes them: those beyond ASCII in octal. */
const escapedBytes = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) => (byte < 128 ? String.fromCharCode(byte) : `\\${byte.toString(8)}`))
    .join('')

/**
 * Matches one of these addresses, but not a part of a longer one. A preceding apostrophe is a quotation mark, unless
 * a letter precedes it, because o'neil isn't neil. A preceding escape, such as JSON's \ , isn't part of it.
 */
const wholeAddress = (spellings: readonly string[]): string =>
  `(?:(?<![a-z0-9_.+-])(?<![a-z0-9]')|(?<=\\\\(?:[nrt]|[0-7]{3})))(?:${spellings.map(literally).join('|')})(?![a-z0-9_-])(?!\\.[a-z0-9_-])`

/** @param identity of an email address. */
export function buildPerson(teamId: string, identity: string): ErasedPerson {
  const spellings = listSpellings(identity)
  const bytesPattern = wholeAddress(spellings.map(escapedBytes))
  return { teamId, identity, spellings, pattern: wholeAddress(spellings), bytesPattern }
}

export function isPerson(recipient: string, identity: string): boolean {
  const mailbox = parseMailbox(recipient)
  return mailbox !== null && parsedAddress(mailbox.address).identity === identity
}

export const namedIn = (emails: readonly FoundEmail[], { identity }: ErasedPerson): FoundEmail[] =>
  emails.filter(({ to_emails }) => to_emails.some((recipient) => isPerson(recipient, identity)))

/** True if an email has no other recipients, or all of them have been erased. */
export const isSoleRecipient = (to: readonly string[], identity: string): boolean =>
  to.every((recipient) => recipient === ERASED || isPerson(recipient, identity))
