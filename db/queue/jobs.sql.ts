/**
 * pg-boss's rows, as far as we read or delete them ourselves: what needs no pg-boss, so that the CLI need not load it.
 * Must not insert or settle jobs: that is pg-boss's own business (queue.ts).
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, mixed, number, object, string } from 'yup'
import type { Database, Tx } from '../postgres/pool.ts'
import { deadLetterOf, JOBS, type JobName } from './jobs.ts'

/**
 * Whether a row has neither a job that is waiting or running, nor a dead letter: a condition for a query over rows.
 * @param id the row's id, as a column.
 */
export const withoutJob = (job: JobName, id: FragmentSqlToken) => sql.fragment`
  not exists (select from pgboss.job j where j.name = ${job} and j.id = ${id} and j.state <= 'active')
  and not exists (
    select from pgboss.job d where d.name = ${deadLetterOf(job)} and d.source_id = ${id} and d.state <= 'active')`

const attemptRow = object({ at: string().defined(), attempts: number().defined() })

/**
 * When a row's waiting job will be tried next and how often it was; null when it has none.
 * pg-boss counts an attempt when the next one is fetched, so a job that has begun was tried once more than it says.
 */
export async function nextAttempt(
  tx: Tx,
  job: JobName,
  id: string,
): Promise<{ at: string; attempts: number } | null> {
  return tx.maybeOne(sql.type(attemptRow)`
    select start_after as at, case when started_on is null then 0 else retry_count + 1 end as attempts
    from pgboss.job
    where name = ${job} and id = ${id} and state < 'active'`)
}

const endRow = object({
  state: string().defined(),
  output: mixed<{ reason?: string; missing?: string[] }>().defined().nullable(),
})

/** How a job stands, and what its last attempt said; null when there is none. For someone who waits for it. */
export async function jobEnd(tx: Tx, job: JobName, id: string): Promise<InferType<typeof endRow> | null> {
  return tx.maybeOne(sql.type(endRow)`
    select state::text, output from pgboss.job where name = ${job} and id = ${id}`)
}

/** How full a queue is. `dead` counts its dead letters. */
export type QueueStatus = {
  queue: string
  ready: number
  active: number
  deferred: number
  failed: number
  dead: number
  oldest_ready_seconds: number | null
}

const statusRow = object({
  name: string().defined(),
  ready: number().defined(),
  active: number().defined(),
  deferred: number().defined(),
  failed: number().defined(),
  oldest_ready_seconds: number().defined().nullable(),
})

/** For a look at the queues, in milliseconds: whoever only watches must not add to a load. */
const STATUS_TIMEOUT = 3_000

/**
 * Every queue of jobs.ts. What waits is counted by the index that fetching uses; active and failed jobs, which no index
 * finds, are as pg-boss counted them a few seconds ago in whichever worker keeps its house.
 */
export async function queueStatus(database: Database): Promise<QueueStatus[]> {
  const rows = await database.transaction(async (tx) => {
    await tx.query(sql.unsafe`select set_config('statement_timeout', ${String(STATUS_TIMEOUT)}, true)`)
    return tx.any(sql.type(statusRow)`
      select q.name, q.active_count as active, q.failed_count as failed, coalesce(w.ready, 0) as ready,
        coalesce(w.deferred, 0) as deferred, floor(extract(epoch from now() - w.oldest)) as oldest_ready_seconds
      from pgboss.queue q left join (
        select name, count(*) filter (where start_after <= now()) as ready,
          count(*) filter (where start_after > now()) as deferred,
          min(start_after) filter (where start_after <= now()) as oldest
        from pgboss.job where state < 'active' and not blocked group by name
      ) w on w.name = q.name`)
  })
  const byName = new Map(rows.map((row) => [row.name, row]))
  const waiting = (name: string) => {
    const row = byName.get(name)
    return row ? row.ready + row.deferred + row.active : 0
  }
  return Object.keys(JOBS).map((queue) => {
    const row = byName.get(queue)
    return {
      queue,
      ready: row?.ready ?? 0,
      active: row?.active ?? 0,
      deferred: row?.deferred ?? 0,
      failed: row?.failed ?? 0,
      dead: waiting(deadLetterOf(queue as JobName)),
      oldest_ready_seconds: row?.oldest_ready_seconds ?? null,
    }
  })
}

/** `queueStatus` for those who ask over and over: one look in so many milliseconds, whoever asks. */
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

/** Deletes the jobs of these rows that have ended. */
export async function deleteEndedJobs(tx: Tx, job: JobName, ids: readonly string[]): Promise<void> {
  await tx.query(sql.unsafe`
    delete from pgboss.job where name = ${job} and id = any(${sql.array(ids, 'uuid')}) and state > 'active'`)
}

/** Deletes the jobs of these rows that are not running, and their dead letters: a fresh job can take their place. */
export async function deleteIdleJobs(tx: Tx, job: JobName, ids: readonly string[]): Promise<void> {
  await tx.query(sql.unsafe`
    delete from pgboss.job where name = ${job} and id = any(${sql.array(ids, 'uuid')}) and state <> 'active'`)
  await tx.query(sql.unsafe`
    delete from pgboss.job
    where name = ${deadLetterOf(job)} and source_id = any(${sql.array(ids, 'uuid')}) and state < 'active'`)
}
