/** Queries to check whether a server is a replica of another, and how far it is behind. No tables. */
import { sql } from 'slonik'
import { boolean, number, string } from 'yup'
import type { Tx } from './pool.ts'
import { row } from './rows.ts'

const placeRow = row({
  /** The same for a server and its standbys only. */
  system: string(),
  database: string(),
  standby: boolean(),
  /** Seconds since the last replay. Null if the server doesn't report it. */
  behind: number().nullable(),
})

/**
 * Returns where a connection leads. A running service writes every few seconds, so a server that replays nothing is
 * behind.
 */
export const readReplayPosition = (tx: Tx) =>
  tx.one(sql.type(placeRow)`
    select system_identifier::text as system, current_database() as database, pg_is_in_recovery() as standby,
      case when pg_is_in_recovery() then extract(epoch from now() - pg_last_xact_replay_timestamp()) end as behind
    from pg_control_system()`)
