/** Normalises phone numbers to E.164. libphonenumber only adds the country and never rejects a number. */
import { createRequire } from 'node:module'
import type * as PhoneNumbers from 'libphonenumber-js/min'

/** `country` is an ISO 3166-1 alpha-2 code (or XK), or null if libphonenumber doesn't know it. */
export type Phone = { e164: string; country: string | null }

const require = createRequire(import.meta.url)

/** Loads libphonenumber (4 MB) with the first number, because most processes never see one. */
function findCountry(e164: string): string | null {
  const { parsePhoneNumberFromString }: typeof PhoneNumbers = require('libphonenumber-js/min')
  return parsePhoneNumberFromString(e164)?.country ?? null
}

/**
 * Returns the number in E.164, or null. Strips spaces and `- . ( ) /`, then only checks ^\+[1-9]\d{7,14}$. DECISIONS:
 * Numbers.
 */
export function normalisePhone(text: string): Phone | null {
  const e164 = text.replace(/[ \-.()/]/g, '')
  if (!/^\+[1-9]\d{7,14}$/.test(e164)) return null
  return { e164, country: findCountry(e164) }
}
