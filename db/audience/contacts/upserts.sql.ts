/** Queries on contact_upserts: bulk calls and their results. */
import { sql } from 'slonik'
import { mixed, object, string } from 'yup'
import { type ErrorData, errorData, RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row } from '../../postgres/rows.ts'
import type { Upserted } from './upsert.ts'

/** The result of each item in order, a contact's ID or an error, or an error for the complete call. */
export type UpsertResult = { items: (string | ErrorData)[] } | { refusal: ErrorData }

/** Stores a call. `body` is UTF-8 JSON as bytes, so that any text can be stored. */
export const insertUpsert = (tx: Tx, teamId: string, { id, body }: { id: string; body: Buffer }, now: Date) =>
  tx.query(sql.prepared('insert_contact_upsert', object())`
    insert into contact_upserts (team_id, id, body, created_at)
    values (${teamId}, ${id}, ${sql.binary(body)}, ${sql.timestamp(now)})`)

const bodyRow = row({ body: string() })

/** Locks an unprocessed call. @returns its body, or null if it is finished or deleted. */
export const lockUpsert = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOneFirst(sql.prepared('lock_contact_upsert', bodyRow)`
    select body from contact_upserts
    where team_id = ${teamId} and id = ${id} and finished_at is null for update`)

export async function finishUpsert(tx: Tx, teamId: string, id: string, upserted: Upserted, now: Date) {
  const result: UpsertResult =
    'refusal' in upserted
      ? { refusal: errorData(upserted.refusal) }
      : { items: upserted.items.map((item) => (item instanceof RequestError ? errorData(item) : item)) }
  await tx.query(sql.prepared('finish_contact_upsert', object())`
    update contact_upserts set body = null, result = ${JSON.stringify(result)}, finished_at = ${sql.timestamp(now)}
    where team_id = ${teamId} and id = ${id}`)
}

const resultRow = row({ result: mixed<UpsertResult>() })

/** Returns the result of a call, or null if it hasn't finished. */
export const upsertResult = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOneFirst(sql.prepared('contact_upsert_result', resultRow)`
    select result from contact_upserts where team_id = ${teamId} and id = ${id} and finished_at is not null`)

// A result contains up to a thousand IDs. A batch of this size is deleted quickly.
const PURGE_BATCH = 1_000

type Past = { finishedBefore: Date; createdBefore: Date }

const deleteBatch = (tx: Tx, { finishedBefore, createdBefore }: Past) =>
  tx.oneFirst(sql.type(countRow)`
    with old as (
      select team_id, id from contact_upserts
      where created_at < ${sql.timestamp(finishedBefore)}
        and (finished_at < ${sql.timestamp(finishedBefore)} or created_at < ${sql.timestamp(createdBefore)})
      limit ${PURGE_BATCH}),
    gone as (
      delete from contact_upserts u using old where u.team_id = old.team_id and u.id = old.id returning 1)
    select count(*) as count from gone`)

/**
 * Deletes finished and expired calls in batches. Call it outside of a transaction, so that each batch commits.
 * @returns how many.
 */
export async function deleteUpserts(tx: Tx, past: Past): Promise<number> {
  let deleted = 0
  for (;;) {
    const batch = await deleteBatch(tx, past)
    deleted += batch
    if (batch < PURGE_BATCH) return deleted
  }
}
