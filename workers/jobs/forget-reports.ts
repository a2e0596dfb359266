/**
 * Cleans up raw reports that came RETENTION_DAYS_REPORTS ago, parked ones too; what is pending stays. A worker's own
 * clock deletes nothing.
 */

import { deleteOldReports } from '../../db/delivery/reports/reports.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import { deleteInBatches } from '../delete-in-batches.ts'
import type { WorkerDeps } from '../deps.ts'

const DAY = 86_400_000

export async function forgetReports({ database, retention, log }: WorkerDeps): Promise<void> {
  const before = new Date((await serviceTime(database)).getTime() - retention.reports * DAY)
  const forgotten = await deleteInBatches(1_000, (most) => deleteOldReports(database, before, most))
  if (forgotten > 0) log.info({ forgotten }, 'forgot reports')
}
