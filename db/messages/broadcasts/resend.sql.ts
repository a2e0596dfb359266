/** Queries for resending a broadcast. */
import { sql } from 'slonik'
import { number } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row } from '../../postgres/rows.ts'
import { fits, isNotReached } from './audience.sql.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'

const unreachedRow = row({ audience: number(), lacking: number() })

/** Counts the contacts that match now and have no email of it. `lacking` of them have no value for a slot. */
export const countUnreached = (tx: Tx, broadcast: BroadcastRow, slots: readonly string[]) =>
  tx.one(sql.type(unreachedRow)`
    select count(*)::integer as audience,
      count(*) filter (where not jsonb_exists_all(properties, ${sql.array(slots, 'text')}))::integer as lacking
    from contacts where team_id = ${broadcast.team_id} and ${fits(broadcast)} and ${isNotReached(broadcast)}`)

export const emailsOf = (tx: Tx, { team_id, id }: BroadcastRow) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from accepted_emails where team_id = ${team_id} and broadcast_id = ${id}`)

/** Deletes the skips of contacts that match now, so that the expansion finds them again. @returns how many. */
export const deleteSkips = (tx: Tx, broadcast: BroadcastRow) =>
  tx.oneFirst(sql.type(countRow)`
    with gone as (
      delete from broadcast_skips where team_id = ${broadcast.team_id} and broadcast_id = ${broadcast.id} and contact_id in (
        select id from contacts where team_id = ${broadcast.team_id} and ${fits(broadcast)} and ${isNotReached(broadcast)})
      returning 1
    )
    select count(*)::integer as count from gone`)

export const rewind = (tx: Tx, { team_id, id }: BroadcastRow) =>
  tx.query(sql.unsafe`
    update broadcasts set cursor = null, walked_at = null, ended_at = null
    where team_id = ${team_id} and id = ${id}`)
