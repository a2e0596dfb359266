/**
 * The sweep: what the queue has lost gets a job again, and what it has given up is told.
 * Promises: the queue may lose a job, a row or a report may not be lost (design §7). What was given up waits for a
 * person, however long. One sweep's fault stops no other.
 */
import { noteEmailsGivenUp } from '../../db/emails/give-up.ts'
import { lostEmails } from '../../db/emails/requeue.sql.ts'
import { requeueEmails } from '../../db/emails/requeue.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import type { Producer } from '../../db/queue/boss.ts'
import { JOBS, type JobName } from '../../db/queue/jobs.ts'
import { lostReports } from '../../db/reports/reports.sql.ts'
import { forgetRecipientPauses } from '../../db/senders/senders.sql.ts'
import { noteMessagesGivenUp } from '../../db/whatsapp/give-up.ts'
import { lostMessages } from '../../db/whatsapp/requeue.sql.ts'
import { requeueMessages } from '../../db/whatsapp/requeue.ts'
import type { WorkerDeps } from '../deps.ts'

/** The most that one round takes of each. */
const LOT = 1_000

type At = { tx: Tx; queue: Pick<Producer, 'reenqueue'>; now: Date }

// A row is lost once it has been without a job for longer than any pause between two tries.
const longAgo = (job: JobName, now: Date): Date =>
  new Date(now.getTime() - (JOBS[job].options.retryDelayMax + 300) * 1_000)

async function requeueLostEmails({ tx, queue, now }: At): Promise<number> {
  const lost = await lostEmails(tx, longAgo('deliver-email', now), LOT)
  return (await requeueEmails({ tx, queue, now }, lost)).length
}

async function requeueLostMessages({ tx, queue, now }: At): Promise<number> {
  const lost = await lostMessages(tx, longAgo('deliver-whatsapp', now), LOT)
  return (await requeueMessages({ tx, queue, now }, lost)).length
}

async function requeueLostReports({ tx, queue, now }: At): Promise<number> {
  const lost = await lostReports(tx, longAgo('ingest-report', now), LOT)
  return queue.reenqueue(
    tx,
    'ingest-report',
    lost.map((report_id) => ({ report_id })),
  )
}

/** What a round does, in this order, and what the log says of those it found. */
const SWEEPS: [words: string, sweep: (at: At) => Promise<number>][] = [
  ['emails were given up; see `queue status`', (at) => noteEmailsGivenUp(at, LOT)],
  ['WhatsApp messages were given up; see `queue status`', (at) => noteMessagesGivenUp(at, LOT)],
  ['requeued emails that had lost their job', requeueLostEmails],
  ['requeued WhatsApp messages that had lost their job', requeueLostMessages],
  ['requeued reports that had lost their job', requeueLostReports],
]

/** One round: up to a thousand of each, and the pauses that are over. */
export async function requeueStale({
  database,
  queue,
  log,
  clock,
}: Pick<WorkerDeps, 'database' | 'queue' | 'log' | 'clock'>): Promise<void> {
  const now = clock()
  for (const [words, sweep] of SWEEPS) {
    try {
      const found = await database.transaction((tx) => sweep({ tx, queue, now }))
      if (found > 0) log.warn({ found }, words)
    } catch (error) {
      log.error({ err: error, sweep: words }, 'this sweep failed')
    }
  }
  await forgetRecipientPauses(database, now)
}
