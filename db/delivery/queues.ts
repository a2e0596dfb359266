/**
 * The queues for an operator: how they stand, pausing them, and their dead letters moved back.
 * Promises: what moves back is noted in the timelines of its messages, in the same transaction.
 */

import { type By, record } from '../accounts/audit/record.ts'
import type { DeliveryJob } from '../channels/channel.sql.ts'
import { DELIVERIES } from '../channels/channels.sql.ts'
import type { At, Database } from '../postgres/pool.ts'
import { queueStatus } from '../queue/jobs.sql.ts'
import { JOBS, type JobName, type Payload } from '../queue/jobs.ts'
import { deletePause, pausedQueues, storePauses } from '../queue/pauses.sql.ts'
import type { Producer } from '../queue/producer.ts'
import { wakeOnCommit } from '../queue/wake.ts'
import { liveProcesses } from '../stats/fleet/fleet.sql.ts'
import { FORGOTTEN_AFTER_S, SILENT_AFTER_S } from '../stats/fleet/fleet.ts'
import { noteRedriven } from './requeue.ts'

export const QUEUES = Object.keys(JOBS) as JobName[]

/** How many dead letters move back at once. */
const REDRIVE_BATCH = 500

export type ShownQueue = Awaited<ReturnType<typeof listQueues>>[number]

/** Each queue as it stands, with the workers on it and their last sign of life. */
export async function listQueues(database: Database) {
  const processes = await liveProcesses(database, FORGOTTEN_AFTER_S)
  const paused = await pausedQueues(database)
  const live = processes.filter(({ silent_seconds }) => silent_seconds <= SILENT_AFTER_S)
  return (await queueStatus(database)).map((queue) => ({
    ...queue,
    paused: paused.has(queue.queue),
    /** Since when and by whom; or why, where the service itself has paused it. */
    paused_at: paused.get(queue.queue)?.paused_at ?? null,
    paused_by: paused.get(queue.queue)?.paused_by ?? null,
    pause_reason: paused.get(queue.queue)?.reason ?? null,
    /** Over the last few seconds, by all workers together. */
    completed_per_second: live.reduce((all, { completed }) => all + (completed[queue.queue] ?? 0), 0),
    workers: processes
      .filter(({ queues }) => queues.includes(queue.queue))
      .map(({ host, pid, seen_at }) => ({ host, pid, seen_at })),
  }))
}

/**
 * Moves a batch of a queue's dead letters back, so that they are tried again: any, or those that were given up for one
 * reason; `most` at most. Those that were there when they were `seen`: what is given up again meanwhile waits for the
 * next call, since a job that fails at once would go round for ever. @returns how many, and whether there may be more.
 */
export async function redriveBatch<J extends JobName>(
  { tx, now, queue }: At & { queue: Pick<Producer, 'redrive'> },
  job: J,
  { reason, seen, most }: { reason: string | null; seen: string; most: number | null },
): Promise<{ moved: number; more: boolean }> {
  const limit = Math.min(REDRIVE_BATCH, most ?? REDRIVE_BATCH)
  const payloads = await queue.redrive(tx, job, { reason, seen, limit })
  const channel = DELIVERIES.find((each) => each.job === job)
  if (channel && payloads.length > 0)
    await noteRedriven({ tx, now }, channel, payloads as Payload<DeliveryJob>[])
  return { moved: payloads.length, more: payloads.length === REDRIVE_BATCH && most !== REDRIVE_BATCH }
}

/** Lets what a queue holds wait; one that is paused stays so. */
export async function pauseQueue(by: By, queue: JobName): Promise<void> {
  await storePauses(by.tx, [queue], { paused_by: by.actor }, by.now)
  await record(by, { team_id: null, action: 'queue.pause', subject: queue })
}

/** Lets a queue go on, at once. */
export async function resumeQueue(by: By, queue: JobName): Promise<void> {
  await deletePause(by.tx, queue)
  await wakeOnCommit(by.tx, queue)
  await record(by, { team_id: null, action: 'queue.resume', subject: queue })
}
