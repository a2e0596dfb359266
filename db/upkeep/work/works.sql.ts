/** Rows of works: background jobs, how far each has come and what it has brought. */
import { sql } from 'slonik'
import { type InferType, mixed, number, object, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import { withoutJob } from '../../queue/dead-letters.sql.ts'

const workRow = row({
  id: string(),
  team_id: string().nullable(),
  kind: string(),
  done: number(),
  total: number().nullable(),
  result: mixed<Record<string, unknown>>(),
  fault: string().nullable(),
  begun_by: string(),
  begun_at: string(),
  finished_at: string().nullable(),
})
export type WorkRow = InferType<typeof workRow>

const columns = sql.fragment`id, team_id, kind, done, total, result, fault, begun_by, begun_at, finished_at`

type NewWork = Pick<WorkRow, 'id' | 'team_id' | 'kind' | 'begun_by' | 'total'> & { given: object }

/** Stores work that is to be done. */
export const insertWork = (tx: Tx, work: NewWork, now: Date) =>
  tx.query(sql.type(object())`
    insert into works (id, team_id, kind, given, total, begun_by, begun_at, moved_at)
    values (${work.id}, ${work.team_id}, ${work.kind}, ${JSON.stringify(work.given)}, ${work.total}, ${work.begun_by},
      ${sql.timestamp(now)}, ${sql.timestamp(now)})`)

const openRow = workRow.concat(row({ given: mixed<object>(), cursor: mixed<object>().nullable() }))
export type OpenWork = InferType<typeof openRow>

/** Work that is not over, locked until the transaction ends; null when it is over or gone. */
export const lockWork = (tx: Tx, id: string) =>
  tx.maybeOne(sql.type(openRow)`
    select ${columns}, given, cursor from works where id = ${id} and finished_at is null for update`)

/** What a slice leads to. `cursor` null: it was the last one. */
export type WorkStep = { cursor: object | null; done: number; total: number | null; result: object }

/** Stores what a slice has done. The last one takes away what was asked for, since it may name a person. */
export async function moveWork(tx: Tx, id: string, step: WorkStep, now: Date) {
  const over = step.cursor === null
  return tx.one(sql.type(workRow)`
    update works set done = ${step.done}, total = ${step.total}, result = ${JSON.stringify(step.result)},
      cursor = ${over ? null : JSON.stringify(step.cursor)}, moved_at = ${sql.timestamp(now)},
      given = case when not ${over} then given end,
      finished_at = case when ${over} then ${sql.timestamp(now)} end
    where id = ${id} returning ${columns}`)
}

/** Ends work that cannot be done, saying why. */
export const endWork = (tx: Tx, id: string, fault: string, now: Date) =>
  tx.query(sql.type(object())`
    update works set fault = ${fault}, cursor = null, given = null, moved_at = ${sql.timestamp(now)},
      finished_at = ${sql.timestamp(now)}
    where id = ${id} and finished_at is null`)

/** One work; null without it. @param team whose; null: anybody's, for operators. */
export const workById = (tx: Tx, team: string | null, id: string) =>
  tx.maybeOne(sql.type(workRow)`
    select ${columns} from works where id = ${id} and (${team}::uuid is null or team_id = ${team})`)

/** Works, newest first. @param team whose; null: everybody's, for operators. */
export async function latestWorks(tx: Tx, team: string | null, limit: number) {
  const own = allOf(team !== null && sql.fragment`team_id = ${team}`)
  return tx.any(sql.type(workRow)`select ${columns} from works where ${own} order by id desc limit ${limit}`)
}

/** Unfinished works that have not moved since `before` and have no job. */
export const lostWorks = (tx: Tx, before: Date, limit: number) =>
  tx.anyFirst(sql.type(idRow)`
    select id from works w where finished_at is null and moved_at < ${sql.timestamp(before)}
      and ${withoutJob('do-work', sql.fragment`w.id`)}
    order by moved_at limit ${limit}`)

export const deleteWorks = (tx: Tx, before: Date) =>
  tx.query(sql.type(object())`
    delete from works where finished_at is not null and begun_at < ${sql.timestamp(before)}`)
