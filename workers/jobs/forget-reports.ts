/** Cleans up raw reports that came RETENTION_DAYS_REPORTS ago, parked ones too; what is pending stays. */
import { deleteOldReports } from '../../db/reports/reports.sql.ts'
import type { WorkerDeps } from '../deps.ts'

const LOT = 1_000
const DAY = 86_400_000

/** Forgets up to a thousand reports at a time, until none is left. */
export async function forgetReports({ database, retention, clock, log }: WorkerDeps): Promise<void> {
  const before = new Date(clock().getTime() - retention.reports * DAY)
  let forgotten = 0
  for (;;) {
    const lot = await deleteOldReports(database, before, LOT)
    forgotten += lot
    if (lot < LOT) break
  }
  if (forgotten > 0) log.info({ forgotten }, 'forgot reports')
}
