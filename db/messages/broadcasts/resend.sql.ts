/** Queries for resending a broadcast. */
import { sql } from 'slonik'
import type { Tx } from '../../postgres/pool.ts'
import { countRow } from '../../postgres/rows.ts'
import { fits, isNotReached } from './audience.sql.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'

/** Counts the contacts that match now and have no email of it. */
export const unreachedSize = (tx: Tx, row: BroadcastRow) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from contacts
    where team_id = ${row.team_id} and ${fits(row)} and ${isNotReached(row)}`)

export const emailsOf = (tx: Tx, { team_id, id }: BroadcastRow) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from accepted_emails where team_id = ${team_id} and broadcast_id = ${id}`)

/** Deletes the skips of contacts that match now, so that the expansion finds them again. @returns how many. */
export const deleteSkips = (tx: Tx, row: BroadcastRow) =>
  tx.oneFirst(sql.type(countRow)`
    with gone as (
      delete from broadcast_skips where team_id = ${row.team_id} and broadcast_id = ${row.id} and contact_id in (
        select id from contacts where team_id = ${row.team_id} and ${fits(row)} and ${isNotReached(row)})
      returning 1
    )
    select count(*)::integer as count from gone`)

export const rewind = (tx: Tx, { team_id, id }: BroadcastRow) =>
  tx.query(sql.unsafe`
    update broadcasts set cursor = null, walked_at = null, ended_at = null
    where team_id = ${team_id} and id = ${id}`)
