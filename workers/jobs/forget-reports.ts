/**
 * Cleans up raw reports that came RETENTION_DAYS_REPORTS ago, parked ones too; what is pending stays. A worker's own
 * clock deletes nothing.
 */

import { deleteOldReports } from '../../db/delivery/reports/reports.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import type { WorkerDeps } from '../deps.ts'

const FORGET_BATCH = 1_000
const DAY = 86_400_000

/** Forgets up to a thousand reports at a time, until none is left. */
export async function forgetReports({ database, retention, log }: WorkerDeps): Promise<void> {
  const before = new Date((await serviceTime(database)).getTime() - retention.reports * DAY)
  let forgotten = 0
  for (;;) {
    const batch = await deleteOldReports(database, before, FORGET_BATCH)
    forgotten += batch
    if (batch < FORGET_BATCH) break
  }
  if (forgotten > 0) log.info({ forgotten }, 'forgot reports')
}
