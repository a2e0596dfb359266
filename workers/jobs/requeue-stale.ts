/**
 * The sweep: what the queue has lost gets a job again, and what it has given up is told.
 * Promises: the queue may lose a job, a row or a report may not be lost (design §7). A dead letter counts as a job:
 * what was given up waits for a person.
 */
import { noteGivenUp } from '../../db/emails/give-up.ts'
import { staleEmails } from '../../db/emails/requeue/table.ts'
import { requeueEmails } from '../../db/emails/requeue.ts'
import { JOBS, type JobName } from '../../db/jobs.ts'
import { staleReports } from '../../db/reports/table.ts'
import { requeueMessages } from '../../db/whatsapp/requeue.ts'
import { staleMessages } from '../../db/whatsapp/table.ts'
import type { WorkerDeps } from '../deps.ts'

const LOT = 1_000

const olderThan = (job: JobName, now: Date): Date =>
  new Date(now.getTime() - (JOBS[job].options.retryDelayMax + 300) * 1_000)

async function sweepEmails({ database, queue, log }: WorkerDeps, now: Date): Promise<void> {
  const candidates = await staleEmails(database, olderThan('deliver-email', now), LOT)
  const ids = candidates.map(({ email_id }) => email_id)
  const alive = await queue.withJob(database, 'deliver-email', ids)
  const lost = candidates.filter(({ email_id }) => !alive.has(email_id))
  if (lost.length === 0) return
  const requeued = await database.transaction(async (tx) => await requeueEmails(tx, queue, lost, now))
  log.warn({ requeued: requeued.length }, 'requeued emails that had lost their job')
}

async function sweepMessages({ database, queue, log }: WorkerDeps, now: Date): Promise<void> {
  const candidates = await staleMessages(database, olderThan('deliver-whatsapp', now), LOT)
  const ids = candidates.map(({ message_id }) => message_id)
  const alive = await queue.withJob(database, 'deliver-whatsapp', ids)
  const lost = candidates.filter(({ message_id }) => !alive.has(message_id))
  if (lost.length === 0) return
  const requeued = await database.transaction(async (tx) => await requeueMessages(tx, queue, lost, now))
  log.warn({ requeued: requeued.length }, 'requeued WhatsApp messages that had lost their job')
}

async function sweepReports({ database, queue, log }: WorkerDeps, now: Date): Promise<void> {
  const ids = await staleReports(database, olderThan('ingest-report', now), LOT)
  const alive = await queue.withJob(database, 'ingest-report', ids)
  const lost = ids.filter((id) => !alive.has(id)).map((report_id) => ({ report_id }))
  if (lost.length === 0) return
  await database.transaction(async (tx) => await queue.reenqueue(tx, 'ingest-report', lost))
  log.warn({ requeued: lost.length }, 'requeued reports that had lost their job')
}

/** One round: up to a thousand of each. */
export async function requeueStale(deps: WorkerDeps): Promise<void> {
  const now = deps.clock()
  await sweepEmails(deps, now)
  await sweepMessages(deps, now)
  await sweepReports(deps, now)
  const told = await deps.database.transaction(async (tx) => await noteGivenUp(tx, now))
  if (told > 0) deps.log.warn({ gave_up: told }, 'emails were given up; see `queue status`')
}
