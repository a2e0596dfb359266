/**
 * The sweep: what the queue has lost gets a job again, and what it has given up is told.
 * Promises: the queue may lose a job, a row or a report may not be lost (design §7). A dead letter counts as a job:
 * what was given up waits for a person.
 */
import { noteGivenUp } from '../../db/emails/give-up.ts'
import { staleEmails } from '../../db/emails/requeue/table.ts'
import { requeueEmails } from '../../db/emails/requeue.ts'
import { JOBS } from '../../db/jobs.ts'
import { staleReports } from '../../db/reports/table.ts'
import type { WorkerDeps } from '../registry.ts'

const LOT = 1_000
const UPKEEP = 300
const LOST_EMAIL = (JOBS['deliver-email'].options.retryDelayMax + UPKEEP) * 1_000
const LOST_REPORT = (JOBS['ingest-report'].options.retryDelayMax + UPKEEP) * 1_000

/** One round: up to a thousand of each. */
export async function requeueStale(deps: WorkerDeps): Promise<void> {
  const now = deps.clock()
  await requeueLostEmails(deps, now)
  await requeueLostReports(deps, now)
  const told = await deps.database.transaction(async (tx) => await noteGivenUp(tx, now))
  if (told > 0) deps.log.warn({ gave_up: told }, 'emails were given up; see `queue status`')
}

/** Emails that have been queued for longer than any retry pause and have no job. */
async function requeueLostEmails({ database, queue, log }: WorkerDeps, now: Date): Promise<void> {
  const candidates = await staleEmails(database, new Date(now.getTime() - LOST_EMAIL), LOT)
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

/** Reports that are still pending and have no job. */
async function requeueLostReports({ database, queue, log }: WorkerDeps, now: Date): Promise<void> {
  const ids = await staleReports(database, new Date(now.getTime() - LOST_REPORT), LOT)
  const alive = await queue.withJob(database, 'ingest-report', ids)
  const lost = ids.filter((id) => !alive.has(id)).map((report_id) => ({ report_id }))
  if (lost.length === 0) return
  await database.transaction(async (tx) => await queue.reenqueue(tx, 'ingest-report', lost))
  log.warn({ requeued: lost.length }, 'requeued reports that had lost their job')
}
