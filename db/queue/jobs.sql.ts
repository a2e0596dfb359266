/**
 * The queries over pg-boss's rows that we run ourselves: to read, delete or put jobs back. They spare the CLI from
 * loading pg-boss, or do what it has no call for. Must not fail jobs, nor complete those whose output is kept: that is
 * pg-boss's own business (boss.ts).
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { boolean, type InferType, mixed, number, string } from 'yup'
import type { Database, Tx } from '../postgres/pool.ts'
import { idRow, row, rowsOf } from '../postgres/rows.ts'
import { deadLetterOf, JOB_RETENTION_S, JOBS, type JobName } from './jobs.ts'

const openRow = row({ active: boolean(), at: string(), dead: boolean() })

/**
 * A row's job that has not ended, or its dead letter; null when it has neither. `at`: when it is due.
 */
export const openJob = (tx: Tx, job: JobName, id: string) =>
  tx.maybeOne(sql.type(openRow)`
    select state = 'active' as active, start_after as at, false as dead from pgboss.job
    where name = ${job} and id = ${id} and state <= 'active'
    union all
    select state = 'active', start_after, true from pgboss.job
    where name = ${deadLetterOf(job)} and source_id = ${id} and state <= 'active'
    order by dead limit 1`)

/**
 * The jobs of a team that were made before this one of its own and have not ended, oldest first; not those that were
 * tried in vain, once that is known: one that kills its workers is tried by itself.
 */
export const openJobsBefore = (tx: Tx, job: JobName, { team_id, id }: { team_id: string; id: string }) =>
  tx.anyFirst(sql.prepared('open_jobs_before', idRow)`
    select id from pgboss.job
    where name = ${sql.literalValue(job)} and id < ${id} and state in ('created', 'active') and retry_count = 0
      and data ->> 'team_id' = ${team_id}
    order by id`)

const endRow = row({
  state: string(),
  team_id: string().nullable(),
  output: mixed<{
    reason?: string
    missing?: string[]
    available?: { name: string; language: string; category: string | null; status: string }[]
    added?: string | null
    sender?: string
    fault?: string | null
  }>().nullable(),
})

/** How a job stands, and what its last attempt said; null when there is none. For someone who waits for it. */
export const jobEnd = (tx: Tx, job: JobName, id: string) =>
  tx.maybeOne(sql.type(endRow)`
    select state::text, data ->> 'team_id' as team_id, output from pgboss.job where name = ${job} and id = ${id}`)

const lengthsRow = row({
  ready: number(),
  active: number(),
  deferred: number(),
  failed: number(),
  oldest_ready_seconds: number().nullable(),
})
/** How full a queue is. `dead` counts its dead letters. What waits is counted up to `MAX_COUNTED`. */
export type QueueStatus = InferType<typeof lengthsRow> & { queue: string; dead: number }

const statusRow = lengthsRow.concat(row({ name: string(), dead: number() }))

/** For a look at the queues, in milliseconds: watching must not add to a load. */
const STATUS_TIMEOUT = 3_000

/** Up to how many of what waits is counted: people want to know whether it is much, and a count reads each. */
export const MAX_COUNTED = 100_000

/**
 * One queue, and its dead letters. Its names are values: by a column of `pgboss.queue` the planner prunes no partition,
 * and expects to read what waits in all of them for each queue.
 */
function statusOf(job: JobName, most: number) {
  const waiting = sql.fragment`from pgboss.job where name = ${job} and state < 'active' and not blocked`
  const counted = (which: FragmentSqlToken) => sql.fragment`
    (select count(*) from (select ${which} order by start_after limit ${most}) j)`
  return sql.fragment`
    select ${job}::text as name,
      coalesce((select failed_count from pgboss.queue where name = ${job}), 0) as failed,
      (select count(*) from pgboss.job where name = ${job} and state = 'active') as active,
      ${counted(sql.fragment`${waiting} and start_after <= now()`)} as ready,
      ${counted(sql.fragment`${waiting} and start_after > now()`)} as deferred,
      (select floor(extract(epoch from now() - start_after)) ${waiting} and start_after <= now()
        order by start_after limit 1) as oldest_ready_seconds,
      ${counted(sql.fragment`from pgboss.job where name = ${deadLetterOf(job)} and state < 'active' and not blocked`)} as dead`
}

/**
 * Every queue of jobs.ts. What waits is counted by the index of what is due, each figure up to `most`; what is active
 * by one of its own; failed jobs, which no index finds, are as pg-boss counted them up to a minute ago.
 */
export async function queueStatus(database: Database, most = MAX_COUNTED): Promise<QueueStatus[]> {
  const each = (Object.keys(JOBS) as JobName[]).map((job) => statusOf(job, most))
  const rows = await database.transaction(async (tx) => {
    await tx.query(sql.unsafe`select set_config('statement_timeout', ${String(STATUS_TIMEOUT)}, true)`)
    return tx.any(sql.type(statusRow)`${sql.join(each, sql.fragment` union all `)}`)
  })
  return rows.map(({ name: queue, ...status }) => ({ queue, ...status }))
}

/** `queueStatus`, cached for a few seconds and shared by all callers. */
export function createQueueStatus(database: Database, fresh = 5_000): () => Promise<QueueStatus[]> {
  let known: { at: number; status: Promise<QueueStatus[]> } | null = null
  return () => {
    if (known === null || performance.now() - known.at >= fresh) {
      const status = queueStatus(database)
      known = { at: performance.now(), status }
      // A look that failed is not kept.
      status.catch(() => {
        known = null
      })
    }
    return known.status
  }
}

/** A claimed job. `retryCount` is the number of its attempt. */
export type Attempt = { id: string; retryCount: number }

/**
 * Deletes claimed jobs that are over, as the attempts that they are. Kept as completed, as pg-boss does it, each would
 * be written once more, entered in every index, and deleted ten minutes later all the same.
 */
export async function deleteDoneJobs(tx: Tx, job: JobName, attempts: readonly Attempt[]): Promise<void> {
  const ids = sql.array(
    attempts.map(({ id }) => id),
    'uuid',
  )
  const numbers = sql.array(
    attempts.map(({ retryCount }) => retryCount),
    'int4',
  )
  // Found by their key: `state = 'active'` would fit the index of active jobs, and all that run would be looked at,
  // with what vacuum has left of those that have ended. Not prepared: a plan that was made while the queue was empty
  // would go through all that waits later.
  await tx.query(sql.unsafe`
    delete from pgboss.job where name = ${sql.literalValue(job)} and id = any(${ids})
      and retry_count = (${numbers})[array_position(${ids}, id)] and state::text = 'active'`)
}

export const deleteEndedJobs = (tx: Tx, job: JobName, ids: readonly string[]) =>
  tx.query(sql.unsafe`
    delete from pgboss.job where name = ${job} and id = any(${sql.array(ids, 'uuid')}) and state > 'active'`)

/** Deletes the jobs of these rows that are not running, and their dead letters: a fresh job can take their place. */
export async function deleteIdleJobs(tx: Tx, job: JobName, ids: readonly string[]): Promise<void> {
  await tx.query(sql.unsafe`
    delete from pgboss.job where name = ${job} and id = any(${sql.array(ids, 'uuid')}) and state <> 'active'`)
  await tx.query(sql.unsafe`
    delete from pgboss.job
    where name = ${deadLetterOf(job)} and source_id = any(${sql.array(ids, 'uuid')}) and state < 'active'`)
}

/** Lets new jobs wait, each for some seconds. */
export const delayJobs = (
  tx: Tx,
  job: JobName,
  { ids, seconds }: { ids: readonly string[]; seconds: readonly number[] },
) =>
  tx.query(sql.unsafe`
    update pgboss.job j set start_after = now() + d.seconds * interval '1 second'
    from unnest(${sql.array(ids, 'uuid')}, ${sql.array(seconds, 'float8')}) as d (id, seconds)
    where j.name = ${job} and j.id = d.id and j.state = 'created'`)

/** One attempt of a job that is put back, and whether it was a try. */
type Postponement = {
  id: string
  attempt: number
  tried: boolean
  seconds: number
  /** Its new one, where it stands in a line. */
  priority?: number | undefined
}

const POSTPONEMENT = { id: 'uuid', attempt: 'int4', tried: 'bool', seconds: 'float8', priority: 'int4' }

/**
 * Puts claimed jobs back, each for its own number of seconds, in one statement; the payload stays. The number of the
 * next attempt is always a new one: pg-boss raises it itself after a try, and what was none must not use up a retry.
 */
export const postponeJobs = (tx: Tx, job: JobName, attempts: readonly Postponement[]) =>
  tx.query(sql.unsafe`
    update pgboss.job j set
      priority = coalesce(p.priority, j.priority),
      state = case when p.tried then 'retry' else 'created' end::pgboss.job_state,
      start_after = now() + p.seconds * interval '1 second',
      started_on = case when p.tried then j.started_on end,
      retry_count = j.retry_count + case when p.tried then 0 else 1 end,
      retry_limit = j.retry_limit + 1,
      keep_until = now() + ${JOB_RETENTION_S} * interval '1 second'
    from ${rowsOf('p', POSTPONEMENT, attempts)}
    where j.name = ${job} and j.id = p.id and j.retry_count = p.attempt and j.state = 'active'`)

/**
 * Those of these claimed jobs that workers have lost this many times, by dying or freezing: whatever else ends an
 * attempt gives the retry back (`postponeJobs`).
 */
export async function oftenLost(tx: Tx, job: JobName, ids: readonly string[], times: number) {
  const found = await tx.anyFirst(sql.type(idRow)`
    select id from pgboss.job
    where name = ${job} and id = any(${sql.array(ids, 'uuid')})
      and retry_count - (retry_limit - ${JOBS[job].options.retryLimit}::int) >= ${times}`)
  return new Set(found)
}

/** Leaves claimed jobs no retry, so that failing them gives them up. */
export const exhaustRetries = (tx: Tx, job: JobName, attempts: readonly Attempt[]) =>
  tx.query(sql.unsafe`
    update pgboss.job j set retry_limit = j.retry_count
    from ${rowsOf('g', { id: 'uuid', retryCount: 'int4' }, attempts)}
    where j.name = ${job} and j.id = g.id and j.retry_count = g."retryCount" and j.state = 'active'`)

/**
 * Makes jobs due that wait for nothing but a state of their row; those that were refused for now, or whose answer was
 * lost, keep their time. @param ids a query for their rows' ids.
 */
export const bringForward = (tx: Tx, job: JobName, ids: FragmentSqlToken) =>
  tx.query(sql.unsafe`
    update pgboss.job set start_after = now()
    where name = ${job} and state = 'created' and start_after > now() and id in (${ids})`)

const waitingRow = row({ jobs: number(), teams: number() })

/** How many jobs of a queue wait, and of how many teams: counted up to `most`. */
export const waitingOfTeams = (tx: Tx, job: JobName, most: number) =>
  tx.one(sql.type(waitingRow)`
    select count(*) as jobs, count(distinct data ->> 'team_id') as teams
    from (select data from pgboss.job where name = ${job} and state < 'active' limit ${most}) waiting`)
