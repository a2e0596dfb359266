/** Cleans up raw reports that came 30 days ago, parked ones too; what is pending stays. */
import { RETENTION } from '../../db/queue/jobs.ts'
import { deleteOldReports } from '../../db/reports/reports.sql.ts'
import type { WorkerDeps } from '../deps.ts'

const LOT = 10_000

/** Forgets up to ten thousand reports at a time, until none is left. */
export async function forgetReports({ database, clock, log }: WorkerDeps): Promise<void> {
  const before = new Date(clock().getTime() - RETENTION * 1_000)
  let forgotten = 0
  for (;;) {
    const lot = await deleteOldReports(database, before, LOT)
    forgotten += lot
    if (lot < LOT) break
  }
  if (forgotten > 0) log.info({ forgotten }, 'forgot reports')
}
