/**
 * Where bounces return to: RETURN_PATH_DOMAIN, or a domain's own name for it. That is a CNAME, so that it inherits MX
 * and SPF, and SPF aligns with the From domain.
 */
import { compact } from '../../validation/keys.ts'
import type { DomainLookups } from './dns-lookups.ts'
import { spfRecords } from './spf.ts'

export const ownReturnPath = (name: string): string => `bounces.${name}`

export type ReturnPathCheck = {
  domain: string | null
  /** The hosts that accept its mail, or null. */
  mx: string[] | null
  /** Its only SPF record, or null. */
  spf: string | null
  last_report_at: string | null
  /** Why bounces can't come back, or null. */
  fault: string | null
}

const NOT_SET =
  'RETURN_PATH_DOMAIN is not set. Bounces go to the mail server of each From domain and are not counted'

/** Checks whether bounces can come back to RETURN_PATH_DOMAIN, and returns its DNS records. */
export async function checkReturnPath(
  domain: string | null,
  { lookupMx, lookupTxt }: DomainLookups,
): Promise<Omit<ReturnPathCheck, 'last_report_at'>> {
  if (domain === null) return { domain, mx: null, spf: null, fault: NOT_SET }
  try {
    const [mx, policies] = await Promise.all([lookupMx(domain), spfRecords(domain, lookupTxt)])
    const faults = compact([
      mx.length === 0 && `${domain} has no MX record, so bounces can't come back`,
      policies.length === 0 && `${domain} has no SPF record`,
      policies.length > 1 && `${domain} has ${policies.length} SPF records, and receivers accept only one`,
    ])
    return {
      domain,
      mx: mx.length === 0 ? null : mx,
      spf: policies.length === 1 ? (policies[0] ?? null) : null,
      fault: faults.length === 0 ? null : faults.join('. '),
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return { domain, mx: null, spf: null, fault: error.message }
  }
}
