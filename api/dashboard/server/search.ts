/** Parses the search field into an email address, an ID, a phone number or search terms. Pure. */
import { parseMailbox } from '../../../db/validation/address.ts'
import { isUuid } from '../../../db/validation/strings.ts'

export type ParsedSearch = { recipient: string } | { id: string } | { text: string }

/** True for a Message-ID that the service generates. It has a UUID before the @. */
const isOurMessageId = (text: string): boolean => isUuid(text.slice(0, 36)) && text[36] === '@'

/** Tells an ID, an address and text apart by their form. */
export function parseSearch(typed: string): ParsedSearch {
  const bare = typed.startsWith('<') && typed.endsWith('>') ? typed.slice(1, -1) : typed
  if (isUuid(bare) || isOurMessageId(bare) || (bare !== typed && bare.includes('@'))) return { id: typed }
  return parseMailbox(typed) ? { recipient: typed } : { text: typed }
}

/** The index on parts of addresses has no shorter ones. */
const MIN_ADDRESS_PART = 3

/** True if it can be part of an address and is long enough for the index. */
export const isAddressPart = (typed: string): boolean =>
  [...typed].length >= MIN_ADDRESS_PART && !/\s/.test(typed)

/** Maximum number of search terms. They are matched one by one in each row. */
const MAX_WORDS = 20

export const wordsIn = (typed: string): string[] => typed.split(/\s+/).filter(Boolean).slice(0, MAX_WORDS)

/** True for a phone number with its +, which is neither part of an address nor of a subject. */
export const isPhone = (typed: string): boolean => typed.startsWith('+') && numberIn(typed) !== null

/** Returns a phone number with a leading +, or null for any other text. */
export const numberIn = (typed: string): string | null => {
  const digits = typed.replace(/[ \-.()/]/g, '')
  if (!/^\+?\d{8,15}$/.test(digits)) return null
  return digits.startsWith('+') ? digits : `+${digits}`
}
