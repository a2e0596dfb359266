/** Lists, pauses and resumes queues, and redrives dead letters, recorded in the timelines in the same transaction. */

import { type By, record } from '../accounts/audit/record.ts'
import type { DeliveryJob } from '../channels/channel.sql.ts'
import { DELIVERIES } from '../channels/channels.sql.ts'
import type { At, Database } from '../postgres/pool.ts'
import { queueStatus } from '../queue/jobs.sql.ts'
import { JOBS, type JobName, PART_OF, type Payload } from '../queue/jobs.ts'
import { deletePauses, pausedQueues, storePauses } from '../queue/pauses.sql.ts'
import type { Producer } from '../queue/producer.ts'
import { wakeOnCommit } from '../queue/wake.ts'
import { liveProcesses } from '../stats/fleet/fleet.sql.ts'
import { LISTED_FOR_S, SILENT_AFTER_S } from '../stats/fleet/fleet.ts'
import { keysOf } from '../validation/keys.ts'
import { recordRedriven } from './requeue.ts'

export const QUEUES = keysOf(JOBS)

const REDRIVE_BATCH = 500

export type ShownQueue = Awaited<ReturnType<typeof listQueues>>[number]

/** Lists the queues with their workers and last heartbeats. */
export async function listQueues(database: Database) {
  const processes = await liveProcesses(database, LISTED_FOR_S)
  const paused = await pausedQueues(database)
  const live = processes.filter(({ silent_seconds }) => silent_seconds <= SILENT_AFTER_S)
  return (await queueStatus(database)).map((queue) => ({
    ...queue,
    paused: paused.has(queue.queue),
    /** The time, user and reason of a pause. Only automatic pauses have a reason. */
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
 * Redrives a batch of a queue's dead letters that existed at `seen`, at most `most`: any, or those with one reason.
 * Jobs that fail again wait for the next call, so that a job that always fails can't cause an endless loop.
 * @returns how many, and whether there may be more.
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
    await recordRedriven({ tx, now }, channel, payloads as Payload<DeliveryJob>[])
  return { moved: payloads.length, more: payloads.length === REDRIVE_BATCH && most !== REDRIVE_BATCH }
}

/** Returns a queue and its parts, which pause together. */
export const withParts = (queue: JobName): JobName[] => {
  const whole = PART_OF.get(queue) ?? queue
  return QUEUES.filter((each) => each === whole || PART_OF.get(each) === whole)
}

/** Pauses a queue and its parts. An existing manual pause stays. Replaces an automatic pause. */
export async function pauseQueue(by: By, queue: JobName): Promise<void> {
  await storePauses(by.tx, withParts(queue), { paused_by: by.actor }, by.now)
  await record(by, { team_id: null, action: 'queue.pause', subject: queue })
}

/** Resumes a queue and its parts immediately. */
export async function resumeQueue(by: By, queue: JobName): Promise<void> {
  const queues = withParts(queue)
  await deletePauses(by.tx, queues)
  for (const each of queues) await wakeOnCommit(by.tx, each)
  await record(by, { team_id: null, action: 'queue.resume', subject: queue })
}
