/**
 * Goes on with long work (db/work), slice by slice.
 * Promises: after some seconds others have their turn, and a drain is never kept waiting; the job ends in the
 * transaction of the slice that it ends with, so that work is never without either.
 */
import type { End } from '../../db/queue/jobs.ts'
import { continueWork } from '../../db/upkeep/work/work.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

/** For how long one work goes on before it stands in line again, in milliseconds. */
const TURN = 5_000

const AGAIN: End = { end: 'snoozed', seconds: 0 }

export async function goOnWithWork({ jobs, settle }: Batch<'do-work'>, deps: WorkerDeps): Promise<void> {
  for (const job of jobs) {
    const until = performance.now() + TURN
    for (let goesOn = true; goesOn; ) {
      await continueWork(deps, job.data.work_id, async (tx, more) => {
        goesOn = more && performance.now() < until
        if (!goesOn) await settle(tx, new Map([[job, more ? AGAIN : { end: 'completed' }]]))
      })
    }
  }
}
