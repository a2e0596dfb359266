/** Reactivates contacts suppressed only by soft bounces once an email to them has stayed `sent` for a day. */
import { reviewSoftSuppressions } from '../../db/audience/suppressions/suppress.ts'
import type { WorkerDeps } from '../deps.ts'

const HOUR_MS = 3_600_000
/** The minutes in which an hourly review runs. A job that is a minute late still runs it. */
const MINUTES = [23, 24]

/** DECISIONS: Delivery reports, Suppression. */
export async function reviewSuppressions({
  database,
  clock,
  log,
  sent_counts_ms,
}: WorkerDeps): Promise<void> {
  const now = clock()
  if (sent_counts_ms >= HOUR_MS && !MINUTES.includes(now.getUTCMinutes())) return
  const lifted = await reviewSoftSuppressions(database, now, sent_counts_ms)
  if (lifted > 0) log.info({ lifted }, 'lifted soft-bounce suppressions')
}
