/**
 * Runs a handler on batches of claimed jobs: claims jobs, parses their payloads, calls the handler, and settles the
 * jobs that the handler left. A handler settles its jobs in the transactions that store its results. An unsettled job
 * is retried after the queue's delay. No raw text reaches the queue, because a NUL would keep a job active forever.
 * An unreadable job is dead-lettered at once. A job from a newer version is left to a newer worker. A job that
 * crashes workers doesn't affect the rest of its batch.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { errorWords } from '../../db/errors.ts'
import type { Database, Tx } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import type { Claims, Ends, FetchedJob } from '../../db/queue/claims.ts'
import { type End, JOBS, type JobName } from '../../db/queue/jobs.ts'
import type { QueuePauses } from '../../db/queue/pauses.ts'
import { isSurelyValid } from '../../db/validation/valid.ts'
import { storableWords } from '../../db/validation/words.ts'
import type { WorkerStats } from '../monitoring/stats.ts'
import { oneByOne, splitIntoPortions } from './poison-jobs.ts'
import { retryWhileUnavailable } from './retry-while-unavailable.ts'

export type Batch<J extends JobName> = {
  jobs: FetchedJob<J>[]
  /**
   * Ends jobs in the caller's transaction. A job that hasn't ended when the handler returns has failed.
   * @param isLast true if nothing follows in it.
   */
  settle(tx: Tx, ends: Ends<J>, isLast?: boolean): Promise<void>
}

export type BatchDeps = { database: Database; pauses: QueuePauses; stats?: WorkerStats; log: Log }

/** Processes one batch and settles its jobs in the transactions of its work. `D` is the type of its dependencies. */
export type Handler<J extends JobName, D extends BatchDeps = BatchDeps> = (
  batch: Batch<J>,
  deps: D,
) => Promise<void>

const isReadable = (job: JobName, data: unknown): boolean =>
  isSurelyValid(JOBS[job].payload, data) || JOBS[job].payload.isValidSync(data, { strict: true })

/** True if a newer version made the job: its payload has a field that its queue doesn't declare here. */
const isNewer = (job: JobName, data: unknown): boolean =>
  Object.keys(data ?? {}).some((field) => !Object.hasOwn(JOBS[job].payload.fields, field))

/** The end of a job with an unreadable payload. Another attempt wouldn't read it either. */
const UNREADABLE: End = { end: 'given_up', reason: 'malformed payload' }

/** Left to a newer worker: claimed again later, by this worker or another. */
export const LEFT_TO_NEWER = { end: 'snoozed', seconds: 60 } as const satisfies End
export const LEFT_TO_NEWER_WORDS = 'leaving jobs of a newer version to its workers'

/** Separates claimed jobs to work on from those that end at once. */
export function splitReadable<J extends JobName>(job: J, claimed: readonly FetchedJob<J>[], log: Log) {
  const others = new Map<FetchedJob<J>, End>()
  const readable = claimed.filter((each) => {
    const newer = isNewer(job, each.data)
    if (newer || !isReadable(job, each.data)) others.set(each, newer ? LEFT_TO_NEWER : UNREADABLE)
    return !others.has(each)
  })
  const left = [...others.values()].filter((end) => end === LEFT_TO_NEWER).length
  if (left > 0) log.warn({ jobs: left }, LEFT_TO_NEWER_WORDS)
  return { readable, others }
}

/** How long a loop waits after an error before it claims again, in milliseconds. */
const RETRY_AFTER_FAILURE_MS = 1_000

export async function runBatches<J extends JobName, D extends BatchDeps>(
  job: J,
  { handle, batchSize, restMs = 0 }: { handle: Handler<J, D>; batchSize: number; restMs?: number },
  claims: Claims<J>,
  deps: D,
): Promise<void> {
  while (!claims.isClosed()) {
    const paused = await deps.pauses(job).catch(() => true)
    const jobs = paused ? [] : await claims.fetch(batchSize)
    // If the database doesn't report which jobs are suspect, each job runs separately.
    const portions = await splitIntoPortions(deps.database, job, jobs).catch(() => oneByOne(jobs))
    for (const portion of portions) await runBatch(job, handle, { jobs: portion.jobs, claims, deps })
    if (jobs.length === batchSize) continue
    // Everything due was claimed.
    if (jobs.length > 0 && restMs > 0) await sleep(restMs)
    await claims.idle()
  }
}

async function runBatch<J extends JobName, D extends BatchDeps>(
  job: J,
  handle: Handler<J, D>,
  { jobs, claims, deps }: { jobs: FetchedJob<J>[]; claims: Claims<J>; deps: D },
): Promise<void> {
  const started = performance.now()
  const log = deps.log.child({ job })
  const { readable, others } = splitReadable(job, jobs, log)
  const ends = new Map<FetchedJob<J>, End>()
  const settle: Batch<J>['settle'] = async (tx, given, isLast) => {
    await claims.settle(tx, given, isLast)
    for (const [each, end] of given) ends.set(each, end)
  }
  let reason = 'the job failed. The worker log has the cause'
  try {
    if (readable.length > 0) await handle({ jobs: readable, settle }, { ...deps, log })
  } catch (error) {
    log.error({ err: error, jobs: jobs.length }, 'batch failed')
    reason = storableWords(errorWords(error))
    ends.clear()
    await sleep(RETRY_AFTER_FAILURE_MS)
  }
  const left = new Map(
    jobs
      .filter((each) => !ends.has(each))
      .map((each): [FetchedJob<J>, End] => [each, others.get(each) ?? { end: 'failed', reason }]),
  )
  if (left.size > 0) {
    await retryWhileUnavailable(() => deps.database.transaction((tx) => claims.settle(tx, left)), log).catch(
      (error) => log.error({ err: error }, 'failed to complete the remaining jobs of a batch'),
    )
  }
  claims.release(jobs)
  for (const { end } of [...ends.values(), ...left.values()]) deps.stats?.ended(job, end)
  const count = (...kinds: End['end'][]) =>
    [...ends, ...left].filter(([, { end }]) => kinds.includes(end)).length
  log.info(
    {
      jobs: jobs.length,
      completed: count('completed'),
      snoozed: count('snoozed'),
      retried: count('failed', 'again'),
      dead: count('given_up'),
      ms: Math.round(performance.now() - started),
    },
    'batch',
  )
}
