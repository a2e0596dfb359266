/**
 * The sweep: requeues rows that have been queued for longer than any retry pause and have no job.
 * Promises: the queue may lose a job, the row may not be lost (design §7). A dead letter counts as a job: what was
 * given up waits for a person.
 */
import { requeueEmails } from '../../db/emails/requeue.ts'
import { staleEmails } from '../../db/emails/table.ts'
import { JOBS, type JobName } from '../../db/jobs.ts'
import { requeueMessages } from '../../db/whatsapp/requeue.ts'
import { staleMessages } from '../../db/whatsapp/table.ts'
import type { WorkerDeps } from '../registry.ts'

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

/** Requeues up to a thousand lost messages of each channel a run. */
export async function requeueStale(deps: WorkerDeps): Promise<void> {
  const now = deps.clock()
  await sweepEmails(deps, now)
  await sweepMessages(deps, now)
}
