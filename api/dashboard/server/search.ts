/**
 * What somebody typed into a field for everything: an address, an id, a number, or words. Pure.
 * Promises: an id is known by its form alone, so that what looks like an address or words is never looked up as one.
 */
import { parseMailbox } from '../../../db/validation/address.ts'
import { isUuid } from '../../../db/validation/strings.ts'

export type ParsedSearch = { recipient: string } | { id: string } | { text: string }

/** A UUID in front of an @: the Message-ID of an email of ours. */
const isOurMessageId = (text: string): boolean => isUuid(text.slice(0, 36)) && text[36] === '@'

/** Which part of an email is meant. */
export function parseSearch(typed: string): ParsedSearch {
  const bare = typed.startsWith('<') && typed.endsWith('>') ? typed.slice(1, -1) : typed
  if (isUuid(bare) || isOurMessageId(bare) || (bare !== typed && bare.includes('@'))) return { id: typed }
  return parseMailbox(typed) ? { recipient: typed } : { text: typed }
}

/** The index on parts of addresses knows no shorter ones. */
const MIN_ADDRESS_PART = 3

/** Whether it may be a part of an address that an index knows. */
export const isAddressPart = (typed: string): boolean =>
  [...typed].length >= MIN_ADDRESS_PART && !/\s/.test(typed)

/** The most words that are looked for, one by one, in each row. */
const MAX_WORDS = 20

export const wordsIn = (typed: string): string[] => typed.split(/\s+/).filter(Boolean).slice(0, MAX_WORDS)

/** A phone number, with or without its +; null for anything else. */
export const numberIn = (typed: string): string | null => {
  const digits = typed.replace(/[ \-.()/]/g, '')
  if (!/^\+?\d{8,15}$/.test(digits)) return null
  return digits.startsWith('+') ? digits : `+${digits}`
}
