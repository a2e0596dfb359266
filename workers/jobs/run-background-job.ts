/**
 * Runs background jobs (db/maintenance/background-jobs) in slices. The queue's job ends in the transaction of the
 * last slice, so that an unfinished background job always has a queue job. An unknown kind is left to a newer worker.
 */

import {
  continueBackgroundJob,
  type Remaining,
} from '../../db/maintenance/background-jobs/background-jobs.ts'
import type { End } from '../../db/queue/jobs.ts'
import { type Batch, LEFT_TO_NEWER, LEFT_TO_NEWER_WORDS } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

/** How long one runs before others have their turn. A drain waits for the end of a turn, not of the job. */
const TURN_MS = 5_000

const ENDS: Record<Remaining, End> = {
  nothing: { end: 'completed' },
  more: { end: 'snoozed', seconds: 0 },
  to_newer: LEFT_TO_NEWER,
}

export async function runBackgroundJobs(
  { jobs, settle }: Batch<'run-background-job'>,
  deps: WorkerDeps,
): Promise<void> {
  for (const job of jobs) {
    const until = performance.now() + TURN_MS
    for (let goesOn = true; goesOn; ) {
      await continueBackgroundJob(deps, job.data.background_job_id, async (tx, remaining) => {
        goesOn = remaining === 'more' && performance.now() < until
        if (remaining === 'to_newer') deps.log.warn({ jobs: 1 }, LEFT_TO_NEWER_WORDS)
        if (!goesOn) await settle(tx, new Map([[job, ENDS[remaining]]]))
      })
    }
  }
}
