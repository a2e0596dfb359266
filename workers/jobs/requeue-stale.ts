/**
 * Repairs losses of the queue: rows, reports and background jobs get a new job, and timelines show failures. A
 * message that lost its job gets no extra attempts. An error in one sweep stops no other.
 */

import { DELIVERIES } from '../../db/channels/channels.sql.ts'
import { lostReports } from '../../db/delivery/reports/reports.sql.ts'
import { recordDeadLettered } from '../../db/delivery/requeue.ts'
import { deleteExpiredRecipientPauses } from '../../db/delivery/senders/senders.sql.ts'
import { requeueLost } from '../../db/delivery/sweep.ts'
import { lostBackgroundJobs } from '../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { lostExpansions } from '../../db/messages/broadcasts/waiting.sql.ts'
import type { Database, Tx } from '../../db/postgres/pool.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import type { Producer } from '../../db/queue/producer.ts'
import type { WorkerDeps } from '../deps.ts'

/** The maximum number of items per sweep and round. */
const SWEEP_LIMIT = 1_000

type At = { tx: Tx; queue: Pick<Producer, 'reenqueue'>; now: Date }

/** A row or report without a job for this long is lost, in milliseconds. Each has a job from the commit on. */
const LOST_AFTER_MS = 35 * 60_000
const longAgo = (now: Date): Date => new Date(now.getTime() - LOST_AFTER_MS)

async function requeueLostReports({ tx, queue, now }: At): Promise<number> {
  const lost = await lostReports(tx, longAgo(now), SWEEP_LIMIT)
  const jobs = lost.map((report_id) => ({ report_id }))
  return queue.reenqueue(tx, 'ingest-report', jobs)
}

async function requeueLostBackgroundJobs({ tx, queue, now }: At): Promise<number> {
  const lost = await lostBackgroundJobs(tx, longAgo(now), SWEEP_LIMIT)
  const jobs = lost.map((background_job_id) => ({ background_job_id }))
  return queue.reenqueue(tx, 'run-background-job', jobs)
}

async function requeueLostExpansions({ tx, queue }: At): Promise<number> {
  return queue.reenqueue(tx, 'expand-broadcast', [...(await lostExpansions(tx, SWEEP_LIMIT))])
}

type Sweep = [words: string, sweep: (at: Omit<At, 'tx'> & { database: Database }) => Promise<number>]

const inOneTransaction =
  (sweep: (at: At) => Promise<number>): Sweep[1] =>
  ({ database, ...at }) =>
    database.transaction((tx) => sweep({ ...at, tx }))

const SWEEPS: Sweep[] = [
  ...DELIVERIES.map(
    (channel): Sweep => [
      `${channel.noun}s were dead-lettered. See \`queue reasons\``,
      inOneTransaction((at) => recordDeadLettered(at, channel, SWEEP_LIMIT)),
    ],
  ),
  ...DELIVERIES.map(
    (channel): Sweep => [
      `requeued ${channel.noun}s that had lost their job`,
      ({ now, ...at }) => requeueLost({ ...at, now }, channel, { before: longAgo(now), most: SWEEP_LIMIT }),
    ],
  ),
  ['requeued reports that had lost their job', inOneTransaction(requeueLostReports)],
  ['requeued broadcasts that had lost their job', inOneTransaction(requeueLostExpansions)],
  ['requeued background jobs that the queue had lost', inOneTransaction(requeueLostBackgroundJobs)],
]

/** Runs one round: repairs up to a thousand of each, and deletes expired pauses. */
export async function requeueStale({
  database,
  queue,
  log,
}: Pick<WorkerDeps, 'database' | 'queue' | 'log'>): Promise<void> {
  const now = await serviceTime(database)
  for (const [words, sweep] of SWEEPS) {
    try {
      const found = await sweep({ database, queue, now })
      if (found > 0) log.warn({ found }, words)
    } catch (error) {
      log.error({ err: error, sweep: words }, 'sweep failed')
    }
  }
  await deleteExpiredRecipientPauses(database)
}
