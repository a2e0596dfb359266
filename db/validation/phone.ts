/**
 * Reads a phone number: strips separators, then applies the pattern of E.164.
 * Promises: libphonenumber only names the country and never refuses a number.
 * Must not know what a number is for, nor which error code a bad one earns.
 */
import { createRequire } from 'node:module'
import type * as PhoneNumbers from 'libphonenumber-js/min'

/** `country` is an ISO 3166-1 alpha-2 code (or XK), null where libphonenumber knows none. */
export type Phone = { e164: string; country: string | null }

const require = createRequire(import.meta.url)

/** The country of a number. What knows it is loaded with the first one (4 MB): most processes never see one. */
function countryOf(e164: string): string | null {
  const { parsePhoneNumberFromString }: typeof PhoneNumbers = require('libphonenumber-js/min')
  return parsePhoneNumberFromString(e164)?.country ?? null
}

/**
 * The number in E.164 form, or null if it is not one: spaces and - . ( ) / are stripped, then
 * ^\+[1-9]\d{7,14}$ decides, nothing stricter. DECISIONS: Numbers.
 */
export function normalisePhone(text: string): Phone | null {
  const e164 = text.replace(/[ \-.()/]/g, '')
  if (!/^\+[1-9]\d{7,14}$/.test(e164)) return null
  return { e164, country: countryOf(e164) }
}
