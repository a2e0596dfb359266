/**
 * The queues for an operator's eyes, and their dead letters moved back.
 * Promises: what moves back is told in the timelines of its messages, in the same transaction.
 */

import { DELIVERIES, type DeliveryJob } from '../channels/channels.sql.ts'
import { liveProcesses } from '../fleet/fleet.sql.ts'
import { FORGOTTEN, SILENCE } from '../fleet/fleet.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import { serviceTime } from '../postgres/time.sql.ts'
import type { Producer } from '../queue/boss.ts'
import { type QueueStatus, queueStatus } from '../queue/jobs.sql.ts'
import { JOBS, type JobName, type Payload } from '../queue/jobs.ts'
import { pausedQueues } from '../queue/pauses.sql.ts'
import { noteRedriven } from './requeue.ts'

export const QUEUES = Object.keys(JOBS) as JobName[]

export type ShownQueue = QueueStatus & {
  paused: boolean
  /** Over the last few seconds, by all workers together. */
  completed_per_second: number
  workers: { host: string; pid: number; seen_at: string }[]
}

/** Each queue as it stands, with the workers on it and their last sign of life. */
export async function listQueues(database: Database): Promise<ShownQueue[]> {
  const processes = await liveProcesses(database, FORGOTTEN)
  const paused = await pausedQueues(database)
  const live = processes.filter(({ silent_seconds }) => silent_seconds <= SILENCE)
  return (await queueStatus(database)).map((queue) => ({
    ...queue,
    paused: paused.has(queue.queue),
    completed_per_second: live.reduce((all, { completed }) => all + (completed[queue.queue] ?? 0), 0),
    workers: processes
      .filter(({ queues }) => queues.includes(queue.queue))
      .map(({ host, pid, seen_at }) => ({ host, pid, seen_at })),
  }))
}

/**
 * Moves a queue's dead letters back, so that they are tried again: all, or those that were given up for one reason.
 * @returns how many.
 */
export async function redriveQueue<J extends JobName>(
  { database, queue }: { database: Database; queue: Pick<Producer, 'redrive'> },
  job: J,
  reason: string | null = null,
): Promise<number> {
  const channel = DELIVERIES.find((each) => each.job === job)
  const moved = async (tx: Tx, payloads: Payload<J>[]) => {
    const now = await serviceTime(tx)
    if (channel) await noteRedriven({ tx, now }, channel, payloads as Payload<DeliveryJob>[])
  }
  return queue.redrive(database, job, { reason, moved })
}
