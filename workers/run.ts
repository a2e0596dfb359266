/**
 * Runs the registered handlers on fetched jobs: parse the payload, call, log, settle.
 * Promises: nothing raw reaches the queue (a NUL in a provider's words would keep a job active for ever,
 * reliability §2 D); a job that cannot be read goes to the dead letters at once.
 */

import type { FetchedJob, Settlement } from '../db/queue/boss.ts'
import { JOBS, type JobName } from '../db/queue/jobs.ts'
import { storableWords } from '../db/text/words.ts'
import type { WorkerDeps } from './deps.ts'
import { HANDLERS, type Handler, SCHEDULED } from './registry.ts'

async function runBatch<J extends JobName>(
  job: J,
  handle: Handler<J>,
  jobs: FetchedJob<J>[],
  deps: WorkerDeps,
): Promise<Settlement[]> {
  const started = performance.now()
  const readable = jobs.filter(({ data }) => JOBS[job].payload.isValidSync(data, { strict: true }))
  const unreadable = jobs.filter((candidate) => !readable.includes(candidate))
  const log = deps.log.child({ job })
  try {
    const settled = readable.length > 0 ? await handle(readable, { ...deps, log }) : []
    const ended = Object.groupBy(settled, ({ status, put_off }) => (put_off ? 'put_off' : status))
    log.info(
      {
        jobs: jobs.length,
        completed: ended.completed?.length ?? 0,
        put_off: ended.put_off?.length ?? 0,
        retried: ended.failed?.length ?? 0,
        dead: (ended.deadletter?.length ?? 0) + unreadable.length,
        ms: Math.round(performance.now() - started),
      },
      'batch',
    )
    const lost = unreadable.map(
      ({ id }): Settlement => ({ id, status: 'deadletter', output: { reason: 'malformed payload' } }),
    )
    return [...settled, ...lost]
  } catch (error) {
    log.error({ err: error, jobs: jobs.length }, 'batch failed')
    return jobs.map(({ id }) => ({
      id,
      status: 'failed',
      output: { reason: storableWords(error instanceof Error ? error.message : String(error)) },
    }))
  }
}

/** Starts working on these queues, and on what runs by the clock. */
export async function startWork(jobs: readonly JobName[], deps: WorkerDeps): Promise<void> {
  for (const job of jobs) await startQueue(job, deps)
  for (const [name, run] of Object.entries(SCHEDULED)) {
    await deps.queue.schedule(name as keyof typeof SCHEDULED, async () => {
      try {
        await run(deps)
      } catch (error) {
        deps.log.error({ err: error, job: name }, 'scheduled job failed')
      }
    })
  }
}

async function startQueue<J extends JobName>(job: J, deps: WorkerDeps): Promise<void> {
  const { handle, batchSize, loops } = HANDLERS[job]
  await deps.queue.work(job, { batchSize, concurrency: loops }, (fetched) =>
    runBatch(job, handle, fetched, deps),
  )
}
