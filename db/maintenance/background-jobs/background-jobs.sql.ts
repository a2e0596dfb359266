/** Rows of background jobs with their progress and results. */
import { sql } from 'slonik'
import { type InferType, mixed, number, object, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import { withoutJob } from '../../queue/dead-letters.sql.ts'

const backgroundJobRow = row({
  id: string(),
  team_id: string().nullable(),
  kind: string(),
  done: number(),
  total: number().nullable(),
  result: mixed<Record<string, unknown>>(),
  fault: string().nullable(),
  begun_by: string(),
  begun_at: string(),
  progressed_at: string(),
  finished_at: string().nullable(),
})
export type BackgroundJobRow = InferType<typeof backgroundJobRow>

const columns = sql.fragment`id, team_id, kind, done, total, result, fault, begun_by, begun_at,
  progressed_at, finished_at`

type NewBackgroundJob = Pick<BackgroundJobRow, 'id' | 'team_id' | 'kind' | 'begun_by' | 'total'> & {
  given: object
}

export const insertBackgroundJob = (tx: Tx, job: NewBackgroundJob, now: Date) =>
  tx.query(sql.type(object())`
    insert into background_jobs (id, team_id, kind, given, total, begun_by, begun_at, progressed_at)
    values (${job.id}, ${job.team_id}, ${job.kind}, ${JSON.stringify(job.given)}, ${job.total}, ${job.begun_by},
      ${sql.timestamp(now)}, ${sql.timestamp(now)})`)

const openRow = backgroundJobRow.concat(row({ given: mixed(), cursor: mixed().nullable() }))
export type OpenBackgroundJob = InferType<typeof openRow>

/** Locks an unfinished job until the transaction ends. Null if it is finished or doesn't exist. */
export const lockBackgroundJob = (tx: Tx, id: string) =>
  tx.maybeOne(sql.type(openRow)`
    select ${columns}, given, cursor from background_jobs where id = ${id} and finished_at is null for update`)

/** The result of a slice. `cursor` null: it was the last one. */
export type BackgroundJobStep<C extends object = object, R extends object = object> = {
  cursor: C | null
  done: number
  total: number | null
  result: R
}

/** Stores the result of a slice. The last one deletes the parameters, because they may contain personal data. */
export async function advanceBackgroundJob(tx: Tx, id: string, step: BackgroundJobStep, now: Date) {
  const over = step.cursor === null
  return tx.one(sql.type(backgroundJobRow)`
    update background_jobs set done = ${step.done}, total = ${step.total}, result = ${JSON.stringify(step.result)},
      cursor = ${over ? null : JSON.stringify(step.cursor)}, progressed_at = ${sql.timestamp(now)},
      given = case when not ${over} then given end,
      finished_at = case when ${over} then ${sql.timestamp(now)} end
    where id = ${id} returning ${columns}`)
}

/** Ends a locked job before its last slice. */
export const endBackgroundJob = (tx: Tx, id: string, result: object, now: Date) =>
  tx.one(sql.type(backgroundJobRow)`
    update background_jobs set result = ${JSON.stringify(result)}, cursor = null, given = null,
      progressed_at = ${sql.timestamp(now)}, finished_at = ${sql.timestamp(now)}
    where id = ${id} returning ${columns}`)

/** Ends a job that can't be done, with the reason. */
export const failBackgroundJob = (tx: Tx, id: string, fault: string, now: Date) =>
  tx.query(sql.type(object())`
    update background_jobs set fault = ${fault}, cursor = null, given = null, progressed_at = ${sql.timestamp(now)},
      finished_at = ${sql.timestamp(now)}
    where id = ${id} and finished_at is null`)

/** @param team its team. Null: any, for operators. */
export const backgroundJobById = (tx: Tx, team: string | null, id: string) =>
  tx.maybeOne(sql.type(backgroundJobRow)`
    select ${columns} from background_jobs where id = ${id} and (${team}::uuid is null or team_id = ${team})`)

/** Lists jobs, newest first. @param team only this team. Null: all, for operators. */
export async function latestBackgroundJobs(tx: Tx, team: string | null, limit: number) {
  const own = allOf(team !== null && sql.fragment`team_id = ${team}`)
  return tx.any(sql.type(backgroundJobRow)`
    select ${columns} from background_jobs where ${own} order by id desc limit ${limit}`)
}

const aimRow = row({
  id: string(),
  given: mixed<{ words?: string; query?: string; force?: boolean; endpoint_id?: string }>(),
})
export type JobAim = InferType<typeof aimRow>

/** Returns which rows unfinished jobs change: their search, or the endpoint of their webhook events. */
export const aimsOf = (tx: Tx, ids: readonly string[]) =>
  tx.any(sql.type(aimRow)`
    select id, given from background_jobs
    where id = any(${sql.array(ids, 'uuid')}) and given is not null`)

export const latestOfKind = (tx: Tx, kind: string) =>
  tx.maybeOne(sql.type(backgroundJobRow)`
    select ${columns} from background_jobs where kind = ${kind} order by id desc limit 1`)

/** Returns unfinished jobs that have not progressed since `before` and aren't in the queue. */
export const lostBackgroundJobs = (tx: Tx, before: Date, limit: number) =>
  tx.anyFirst(sql.type(idRow)`
    select id from background_jobs b where finished_at is null and progressed_at < ${sql.timestamp(before)}
      and ${withoutJob('run-background-job', sql.fragment`b.id`)}
    order by progressed_at limit ${limit}`)

export const deleteBackgroundJobs = (tx: Tx, before: Date) =>
  tx.query(sql.type(object())`
    delete from background_jobs where finished_at is not null and begun_at < ${sql.timestamp(before)}`)
