/** Whether bounces can come back: what DNS has of RETURN_PATH_DOMAIN, and when the last report came. */
import type { DomainLookups } from '../../accounts/domains/dns-lookups.ts'
import { checkReturnPath, type ReturnPathCheck } from '../../accounts/domains/return-path.ts'
import type { Tx } from '../../postgres/pool.ts'
import { lastMailReport } from '../reports/reports.sql.ts'

export async function returnPathCheck(
  tx: Tx,
  domain: string | null,
  looks: DomainLookups,
): Promise<ReturnPathCheck> {
  const [{ fault, ...found }, last_report_at] = await Promise.all([
    checkReturnPath(domain, looks),
    lastMailReport(tx),
  ])
  return { ...found, last_report_at, fault }
}
