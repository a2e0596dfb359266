/**
 * The sweep: requeues rows that have been queued for longer than any retry pause and have no job.
 * Promises: the queue may lose a job, the row may not be lost (design §7). A dead letter counts as a job: what was
 * given up waits for a person.
 */
import { requeueEmails } from '../../db/emails/requeue.ts'
import { staleEmails } from '../../db/emails/table.ts'
import { JOBS } from '../../db/jobs.ts'
import type { WorkerDeps } from '../registry.ts'

const LOT = 1_000
const OLDER_THAN = (JOBS['deliver-email'].options.retryDelayMax + 300) * 1_000

/** Requeues up to a thousand lost emails a run. */
export async function requeueStale({ database, queue, clock, log }: WorkerDeps): Promise<void> {
  const now = clock()
  const candidates = await staleEmails(database, new Date(now.getTime() - OLDER_THAN), LOT)
  const alive = await queue.withJob(
    database,
    'deliver-email',
    candidates.map(({ email_id }) => email_id),
  )
  const lost = candidates.filter(({ email_id }) => !alive.has(email_id))
  if (lost.length === 0) return
  const requeued = await database.transaction(async (tx) => await requeueEmails(tx, queue, lost, now))
  log.warn({ requeued: requeued.length }, 'requeued emails that had lost their job')
}
