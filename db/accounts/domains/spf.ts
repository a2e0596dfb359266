/** The SPF records of envelope domains (RFC 7208). Receivers check no other. */
import type { TxtLookup } from './dns-lookups.ts'
import { hasVersion } from './record-tags.ts'

/** The record to publish if the name has no SPF record. */
export const DEFAULT_SPF = 'v=spf1 a mx ~all'

/** The SPF records of a name. Receivers treat several as none (RFC 7208 §4.5). */
export const spfRecords = async (name: string, lookupTxt: TxtLookup): Promise<string[]> =>
  (await lookupTxt(name)).filter(hasVersion('spf1'))
