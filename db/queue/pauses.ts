/** Checks whether a queue is paused, before each claim, with at most one query per second for all queues. */
import type { Database } from '../postgres/pool.ts'
import type { JobName } from './jobs.ts'
import { pausedQueues, type QueuePause } from './pauses.sql.ts'

export type QueuePauses = (job: JobName) => Promise<boolean>

/** The maximum age of the result. */
const PAUSES_CACHED_MS = 1_000

export function createQueuePauses(database: Database): QueuePauses {
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<ReadonlyMap<string, QueuePause>> = Promise.resolve(new Map())
  return async (job) => {
    if (performance.now() - readAt >= PAUSES_CACHED_MS) {
      readAt = performance.now()
      reading = pausedQueues(database)
    }
    return (await reading).has(job)
  }
}
