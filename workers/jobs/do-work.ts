/**
 * Goes on with background jobs (db/upkeep/work), slice by slice.
 * Promises: after some seconds others have their turn, and a drain is never kept waiting; the job ends in the
 * transaction of the slice that it ends with, so that work is never without either. Work of a kind that is not known
 * here is left to a newer worker.
 */
import type { End } from '../../db/queue/jobs.ts'
import { continueWork, type Left } from '../../db/upkeep/work/work.ts'
import { type Batch, LEFT_TO_NEWER, LEFT_TO_NEWER_WORDS } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

/** For how long one work goes on before it stands in line again, in milliseconds. */
const WORK_TURN_MS = 5_000

const ENDS: Record<Left, End> = {
  nothing: { end: 'completed' },
  more: { end: 'snoozed', seconds: 0 },
  to_newer: LEFT_TO_NEWER,
}

export async function goOnWithWork({ jobs, settle }: Batch<'do-work'>, deps: WorkerDeps): Promise<void> {
  for (const job of jobs) {
    const until = performance.now() + WORK_TURN_MS
    for (let goesOn = true; goesOn; ) {
      await continueWork(deps, job.data.work_id, async (tx, left) => {
        goesOn = left === 'more' && performance.now() < until
        if (left === 'to_newer') deps.log.warn({ jobs: 1 }, LEFT_TO_NEWER_WORDS)
        if (!goesOn) await settle(tx, new Map([[job, ENDS[left]]]))
      })
    }
  }
}
