/** Rows of refused_calls: the last rejected API calls of a team. */
import { sql } from 'slonik'
import { type InferType, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

export const CALLS_STORED = 20

const refusedRow = row({
  id: string(),
  method: string(),
  route: string(),
  code: string(),
  message: string(),
  key_prefix: string().nullable(),
  http_request_id: string(),
  created_at: string(),
})
export type RejectedCall = InferType<typeof refusedRow>

const CALL = {
  ...{ team_id: 'uuid', id: 'uuid', method: 'text', route: 'text', code: 'text', message: 'text' },
  ...{ key_prefix: 'text', http_request_id: 'text', created_at: 'timestamptz' },
}

/** Stores calls, and deletes all but the latest `CALLS_STORED` of each team. Drops calls of deleted teams. */
export async function insertRejectedCalls(tx: Tx, calls: readonly (RejectedCall & { team_id: string })[]) {
  await tx.query(sql.unsafe`
    insert into refused_calls (team_id, id, method, route, code, message, key_prefix, http_request_id, created_at)
    select c.* from ${rowsOf('c', CALL, calls)}
    join teams t on t.id = c.team_id`)
  const teams = sql.array([...new Set(calls.map(({ team_id }) => team_id))], 'uuid')
  await tx.query(sql.unsafe`
    delete from refused_calls r where team_id = any(${teams}) and id < (
      select id from refused_calls k where k.team_id = r.team_id order by id desc offset ${CALLS_STORED - 1} limit 1)`)
}

/** Returns a team's rejected calls, or those of the key with this prefix, newest first. */
export const rejectedCalls = (tx: Tx, teamId: string, keyPrefix?: string) =>
  tx.any(sql.type(refusedRow)`
    select id, method, route, code, message, key_prefix, http_request_id, created_at from refused_calls
    where team_id = ${teamId} and ${allOf(keyPrefix !== undefined && sql.fragment`key_prefix = ${keyPrefix}`)}
    order by id desc limit ${CALLS_STORED}`)
