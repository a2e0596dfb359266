/**
 * Our own queries over pg-boss's rows: read, delete and defer jobs. They do what pg-boss has no call for, or keep the
 * CLI from loading it.
 */

import { type FragmentSqlToken, sql } from 'slonik'
import { boolean, type InferType, mixed, number, string } from 'yup'
import { LAST_UNPREPARED } from '../postgres/joined.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import { idRow, row, rowsOf } from '../postgres/rows.ts'
import { keysOf } from '../validation/keys.ts'
import { deadLetterQueue, JOB_RETENTION_S, JOBS, type JobName } from './jobs.ts'

const openRow = row({ active: boolean(), at: string(), dead: boolean() })

/** Returns a row's unfinished job or dead letter, or null. `at`: when it is due. */
export const openJob = (tx: Tx, job: JobName, id: string) =>
  tx.maybeOne(sql.type(openRow)`
    select state = 'active' as active, start_after as at, false as dead from pgboss.job
    where name = ${job} and id = ${id} and state <= 'active'
    union all
    select state = 'active', start_after, true from pgboss.job
    where name = ${deadLetterQueue(job)} and source_id = ${id} and state <= 'active'
    order by dead limit 1`)

const dueRow = row({ id: string(), at: string() })

/** Returns when the waiting jobs of rows are due, by the row's ID. */
export async function dueTimes(tx: Tx, job: JobName, ids: readonly string[]) {
  const rows = await tx.any(sql.type(dueRow)`
    select id, start_after as at from pgboss.job
    where name = ${job} and id = any(${sql.array(ids, 'uuid')}) and state < 'active'`)
  return new Map(rows.map(({ id, at }) => [id, at]))
}

/**
 * Returns the jobs of a team that were created before this one and have not ended, oldest first. Excludes jobs that
 * were attempted before, because a job that kills its workers is attempted separately.
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

/** Returns a job's state and the output of its last attempt, for a caller that waits for it, or null. */
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
/** The counts of a queue. `dead`: its dead letters. Waiting jobs are counted up to `MAX_COUNTED`. */
export type QueueStatus = InferType<typeof lengthsRow> & { queue: string; dead: number }

const statusRow = lengthsRow.concat(row({ name: string(), dead: number() }))

/** The statement timeout for reading the status, in milliseconds. Monitoring must not add load. */
const STATUS_TIMEOUT = 3_000

export const MAX_COUNTED = 100_000

/**
 * Counts one queue and its dead letters. The names are literals: with a column of `pgboss.queue` the planner prunes
 * no partition.
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
      ${counted(sql.fragment`from pgboss.job where name = ${deadLetterQueue(job)} and state < 'active' and not blocked`)} as dead`
}

/**
 * Returns the counts of every queue. Waiting jobs are counted in the index of due jobs, each count up to `most`.
 * Active jobs have their own index. Failed jobs, which no index finds, are as pg-boss counted them up to a minute
 * ago.
 */
export async function queueStatus(database: Database, most = MAX_COUNTED): Promise<QueueStatus[]> {
  const each = keysOf(JOBS).map((job) => statusOf(job, most))
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
      // Errors aren't cached.
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
 * Deletes completed claimed jobs, for the claimed attempts. pg-boss would keep each as completed: written
 * again, added to every index, and deleted ten minutes later.
 * @param isLast true if the statement also commits (postgres/joined.ts).
 */
export async function deleteDoneJobs(
  tx: Tx,
  job: JobName,
  attempts: readonly Attempt[],
  isLast = false,
): Promise<void> {
  const ids = sql.array(
    attempts.map(({ id }) => id),
    'uuid',
  )
  const numbers = sql.array(
    attempts.map(({ retryCount }) => retryCount),
    'int4',
  )
  // Found by key: `state = 'active'` would match the index of active jobs, and read all running ones and dead
  // tuples. Not prepared: a plan made while the queue was empty would later scan all waiting jobs.
  const statement = sql.unsafe`
    delete from pgboss.job where name = ${sql.literalValue(job)} and id = any(${ids})
      and retry_count = (${numbers})[array_position(${ids}, id)] and state::text = 'active'`
  await tx.query(isLast ? { ...statement, name: LAST_UNPREPARED } : statement)
}

export const deleteEndedJobs = (tx: Tx, job: JobName, ids: readonly string[]) =>
  tx.query(sql.unsafe`
    delete from pgboss.job where name = ${job} and id = any(${sql.array(ids, 'uuid')}) and state > 'active'`)

/** Deletes these rows' jobs that aren't running, and their dead letters, so that new jobs can replace them. */
export async function deleteIdleJobs(tx: Tx, job: JobName, ids: readonly string[]): Promise<void> {
  await tx.query(sql.unsafe`
    delete from pgboss.job where name = ${job} and id = any(${sql.array(ids, 'uuid')}) and state <> 'active'`)
  await tx.query(sql.unsafe`
    delete from pgboss.job
    where name = ${deadLetterQueue(job)} and source_id = any(${sql.array(ids, 'uuid')}) and state < 'active'`)
}

/** Delays new jobs, each by some seconds. */
export const delayJobs = (
  tx: Tx,
  job: JobName,
  { ids, seconds }: { ids: readonly string[]; seconds: readonly number[] },
) =>
  tx.query(sql.unsafe`
    update pgboss.job j set start_after = now() + d.seconds * interval '1 second'
    from unnest(${sql.array(ids, 'uuid')}, ${sql.array(seconds, 'float8')}) as d (id, seconds)
    where j.name = ${job} and j.id = d.id and j.state = 'created'`)

/** A deferred attempt of a job. `tried`: true if it counts. */
type Postponement = {
  id: string
  attempt: number
  tried: boolean
  seconds: number
  /** The new priority, if the queue has an order. */
  priority?: number | undefined
}

const POSTPONEMENT = { id: 'uuid', attempt: 'int4', tried: 'bool', seconds: 'float8', priority: 'int4' }

/**
 * Defers claimed jobs, each by its own number of seconds, in one statement. The next attempt always has a new number:
 * pg-boss raises it after a counted attempt. An uncounted one must not use up a retry.
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

/** Returns the IDs of the attempts that are still claimed. */
export async function attemptsUnderWay(tx: Tx, job: JobName, attempts: readonly Attempt[]) {
  const found = await tx.anyFirst(sql.type(idRow)`
    select j.id from pgboss.job j join ${rowsOf('a', { id: 'uuid', retryCount: 'int4' }, attempts)} using (id)
    where j.name = ${job} and j.retry_count = a."retryCount" and j.state = 'active'`)
  return new Set(found)
}

/**
 * Returns the claimed jobs that workers have lost this many times by dying or freezing. Every other end of an attempt
 * returns the retry (`postponeJobs`).
 */
export async function oftenLost(tx: Tx, job: JobName, ids: readonly string[], times: number) {
  const found = await tx.anyFirst(sql.type(idRow)`
    select id from pgboss.job
    where name = ${job} and id = any(${sql.array(ids, 'uuid')})
      and retry_count - (retry_limit - ${JOBS[job].options.retryLimit}::int) >= ${times}`)
  return new Set(found)
}

/** Sets the retry limit of claimed jobs, so that failing them moves them to the dead letters. */
export const exhaustRetries = (tx: Tx, job: JobName, attempts: readonly Attempt[]) =>
  tx.query(sql.unsafe`
    update pgboss.job j set retry_limit = j.retry_count
    from ${rowsOf('g', { id: 'uuid', retryCount: 'int4' }, attempts)}
    where j.name = ${job} and j.id = g.id and j.retry_count = g."retryCount" and j.state = 'active'`)

/**
 * Makes jobs due that only wait for a state of their row. Jobs that were deferred, or whose response was lost, keep
 * their time.
 * @param ids a query for the row IDs.
 */
export const bringForward = (tx: Tx, job: JobName, ids: FragmentSqlToken) =>
  tx.query(sql.unsafe`
    update pgboss.job set start_after = now()
    where name = ${job} and state = 'created' and start_after > now() and id in (${ids})`)

const waitingTeamRow = row({ team_id: string(), jobs: number(), due_at: string() })

/** Counts the first `most` waiting jobs of a queue per team, for the `limit` teams with the most jobs. */
export const teamsWaiting = (tx: Tx, job: JobName, { most, limit }: { most: number; limit: number }) =>
  tx.any(sql.type(waitingTeamRow)`
    select data ->> 'team_id' as team_id, count(*) as jobs, min(start_after) as due_at
    from (
      select data, start_after from pgboss.job where name = ${job} and state < 'active' and not blocked
      order by start_after limit ${most}) waiting
    where data ->> 'team_id' is not null
    group by 1 order by jobs desc, due_at limit ${limit}`)

const keyRow = row({ key: string() })
const WAITING_PLACE = { key: 'text', job: 'text', grouped_by: 'text' }

/** Returns the keys of these queues, or groups of jobs in them, that have waiting jobs. */
export const keysWithJobs = (
  tx: Tx,
  places: readonly { key: string; job: JobName; grouped_by: string | null }[],
) =>
  tx.anyFirst(sql.type(keyRow)`
    select distinct key from ${rowsOf('p', WAITING_PLACE, places)}
    where case
      when p.grouped_by is null then exists (select from pgboss.job where name = p.job and state < 'active')
      else exists (select from pgboss.job where name = p.job and state < 'active' and group_id = p.grouped_by)
    end`)

const waitingRow = row({ jobs: number(), teams: number() })

/** Counts the waiting jobs of queues and their teams, up to `most`. */
export const waitingOfTeams = (
  tx: Tx,
  jobs: readonly JobName[],
  { most, group = null }: { most: number; group?: string | null },
) =>
  tx.one(sql.type(waitingRow)`
    select count(*) as jobs, count(distinct data ->> 'team_id') as teams
    from (select data from pgboss.job where name = any(${sql.array(jobs, 'text')}) and state < 'active'
      ${group === null ? sql.fragment`` : sql.fragment`and group_id = ${group}`} limit ${most}) waiting`)
