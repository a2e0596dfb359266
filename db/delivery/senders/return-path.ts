/** Checks whether bounces can come back: the DNS records of RETURN_PATH_DOMAIN, and the time of the last report. */
import type { DomainLookups } from '../../accounts/domains/dns-lookups.ts'
import { checkReturnPath, type ReturnPathCheck } from '../../accounts/domains/return-path.ts'
import type { Tx } from '../../postgres/pool.ts'
import { lastMailReport } from '../reports/reports.sql.ts'

/** How long metrics cache the DNS result, in milliseconds. */
const KEPT_MS = 300_000

export async function returnPathCheck(
  tx: Tx,
  domain: string | null,
  looks: DomainLookups,
  check = checkReturnPath(domain, looks),
): Promise<ReturnPathCheck> {
  const [{ fault, ...found }, last_report_at] = await Promise.all([check, lastMailReport(tx)])
  return { ...found, last_report_at, fault }
}

/** Creates the check for metrics, which queries DNS every five minutes. */
export function createReturnPathCheck(domain: string | null, looks: DomainLookups) {
  let kept: { at: number; check: ReturnType<typeof checkReturnPath> } | null = null
  return (tx: Tx): Promise<ReturnPathCheck> => {
    if (kept === null || Date.now() - kept.at > KEPT_MS)
      kept = { at: Date.now(), check: checkReturnPath(domain, looks) }
    return returnPathCheck(tx, domain, looks, kept.check)
  }
}
