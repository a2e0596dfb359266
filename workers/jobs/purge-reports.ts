/**
 * Deletes raw reports older than RETENTION_DAYS_REPORTS by the database's clock, except pending ones, and tokens of
 * relays' posts that can't be used again.
 */

import { deleteOldTokens } from '../../db/delivery/reports/relay-tokens.sql.ts'
import { deleteOldReports } from '../../db/delivery/reports/reports.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import { deleteInBatches } from '../delete-in-batches.ts'
import type { WorkerDeps } from '../deps.ts'

const DAY = 86_400_000
/** For web processes whose clock is behind the database's. */
const TOKENS_KEPT_MS = 3_600_000

export async function purgeReports({ database, retention, log }: WorkerDeps): Promise<void> {
  const now = (await serviceTime(database)).getTime()
  await deleteInBatches(1_000, (most) => deleteOldTokens(database, new Date(now - TOKENS_KEPT_MS), most))
  const before = new Date(now - retention.reports * DAY)
  const deleted = await deleteInBatches(1_000, (most) => deleteOldReports(database, before, most))
  if (deleted > 0) log.info({ deleted }, 'deleted expired reports')
}
