/**
 * Background jobs run in slices: the first one in the process that starts the job, the rest in workers, or all of
 * them in the CLI. Each slice is a transaction with its cursor, so that a crash neither repeats nor skips anything.
 * The last slice writes the audit entry. Jobs of a kind that only a newer version knows don't change.
 */
import { type Actor, record } from '../../accounts/audit/record.ts'
import { RequestError } from '../../errors.ts'
import { type Database, isTooSlow, type Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { idNow } from '../../process/ids.ts'
import {
  advanceBackgroundJob,
  type BackgroundJobRow,
  failBackgroundJob,
  insertBackgroundJob,
  lockBackgroundJob,
} from './background-jobs.sql.ts'
import type { BackgroundJobTools } from './kind.ts'
import { type BackgroundJobKind, type Given, isKnownKind, KINDS } from './kinds.ts'

type BackgroundJobDeps = BackgroundJobTools & { database: Database }

export type Wanted = { [K in BackgroundJobKind]: { kind: K; given: Given<K> } }[BackgroundJobKind] & {
  team_id: string | null
  actor: Actor
  /** The number of rows to process, if known. */
  total?: number | null
  /** The job's ID, if another row has the same one. */
  id?: string
  /** Stores the data of the job, in the transaction that starts it. */
  store?: (tx: Tx, now: Date) => Promise<void>
}

async function begin(tx: Tx, { team_id, kind, given, actor, store, total, id = idNow() }: Wanted) {
  const now = await serviceTime(tx)
  await store?.(tx, now)
  await insertBackgroundJob(tx, { id, team_id, kind, given, total: total ?? null, begun_by: actor }, now)
  return id
}

/**
 * Runs the next slice of a job, unless only a newer version can.
 * @returns the job afterwards, or null if it had already finished or doesn't exist.
 */
async function slice(
  tx: Tx,
  tools: BackgroundJobTools,
  id: string,
): Promise<BackgroundJobRow | null | 'of_newer'> {
  const job = await lockBackgroundJob(tx, id)
  if (!job) return null
  const run = isKnownKind(job.kind) ? KINDS[job.kind].open(job) : null
  if (!run) return 'of_newer'
  const now = await serviceTime(tx)
  const by = { tx, now, actor: job.begun_by }
  const { step, entry } = await run({ ...tools, ...by })
  if (entry) await record(by, { team_id: job.team_id, ...entry })
  return advanceBackgroundJob(tx, id, step, now)
}

/**
 * Starts a job and runs its first slice. Workers run the rest.
 * @returns the job, finished if it was small. @throws RequestError if it can't be started.
 */
export async function beginBackgroundJob(
  { database, ...tools }: BackgroundJobDeps,
  wanted: Wanted,
): Promise<BackgroundJobRow> {
  const start = (withSlice: boolean) =>
    database.transaction(async (tx) => {
      const id = await begin(tx, wanted)
      const job = withSlice ? ownJob(await slice(tx, tools, id)) : null
      if (job?.finished_at) return { ...job, id }
      await tools.queue.enqueue(tx, 'run-background-job', [{ background_job_id: id }])
      return { ...(job ?? begun(wanted)), id }
    })
  try {
    return await start(true)
  } catch (error) {
    if (!isTooSlow(error)) throw error
    return start(false)
  }
}

/** Returns a job of this process. @throws Error if its kind can't read the stored form. */
function ownJob(job: BackgroundJobRow | null | 'of_newer'): BackgroundJobRow | null {
  if (job === 'of_newer') throw new Error('the input of a background job does not match its schema')
  return job
}

/** A job before its first slice. */
const begun = ({ team_id, kind, actor, total = null }: Wanted): Omit<BackgroundJobRow, 'id'> => ({
  team_id,
  kind,
  done: 0,
  total,
  result: {},
  fault: null,
  begun_by: actor,
  begun_at: '',
  progressed_at: '',
  finished_at: null,
})

/** The remaining work after a slice: nothing, more, or everything to a newer worker that knows the kind. */
export type Remaining = 'nothing' | 'more' | 'to_newer'

const remainingAfter = (job: BackgroundJobRow | null | 'of_newer'): Remaining => {
  if (job === 'of_newer') return 'to_newer'
  return job === null || job.finished_at !== null ? 'nothing' : 'more'
}

/**
 * Runs the next slice of a job in its own transaction, with `after` in it. A RequestError ends the job with its
 * message.
 */
export async function continueBackgroundJob(
  { database, ...tools }: BackgroundJobDeps,
  id: string,
  after: (tx: Tx, remaining: Remaining) => Promise<void>,
): Promise<void> {
  try {
    await database.transaction(async (tx) => after(tx, remainingAfter(await slice(tx, tools, id))))
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    await database.transaction(async (tx) => {
      await failBackgroundJob(tx, id, error.message, await serviceTime(tx))
      await after(tx, 'nothing')
    })
  }
}

/**
 * Starts a job and runs all of it here. If this process dies, workers do the rest.
 * @returns the result. @throws RequestError if it can't be done.
 */
export async function runBackgroundJob<R extends object>(deps: BackgroundJobDeps, wanted: Wanted) {
  const { database, ...tools } = deps
  const id = await database.transaction((tx) => begin(tx, wanted))
  for (;;) {
    const job = await database
      .transaction(async (tx) => ownJob(await slice(tx, tools, id)))
      .catch(async (error: unknown) => {
        if (error instanceof RequestError)
          await failBackgroundJob(database, id, error.message, await serviceTime(database))
        throw error
      })
    if (job === null || job.finished_at !== null) return (job?.result ?? {}) as R
  }
}
