/**
 * The row that identifies the original database, and the heartbeats of processes, which distinguish a failover from a
 * copy (DECISIONS: A restored copy).
 */
import { sql } from 'slonik'
import { boolean, type InferType, object, string } from 'yup'
import type { Database, Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'

const lookRow = row({
  /** True if the last heartbeat of the process, or a later one, exists. */
  found: boolean(),
  at: string(),
  is_home: boolean(),
  /** True if nothing but the timeline can have changed. Null before any process has started. */
  is_same_place: boolean().nullable(),
  home_id: string().nullable(),
  how: string()
    .oneOf(['begun', 'continued', 'restored'] as const)
    .nullable(),
})
export type HeartbeatResult = InferType<typeof lookRow>

type Mark = { process: string; last: number | null; next: number }

/**
 * Writes a process's next heartbeat, unless its last one is missing. If the response is lost, a repetition must find
 * it missing again. @param last null for a process without one.
 */
export async function writeHeartbeat(tx: Tx, { process, last, next }: Mark) {
  const written =
    last === null
      ? sql.fragment`
        insert into process_marks (process, mark, at) values (${process}, ${next}, now())
        on conflict (process) do update set mark = excluded.mark, at = excluded.at returning mark`
      : sql.fragment`
        update process_marks set mark = ${next}, at = now() where process = ${process} and mark >= ${last}
        returning mark`
  return tx.one(sql.prepared(last === null ? 'first_mark' : 'next_mark', lookRow)`
    with written as (${written})
    select exists (select from written) as found, now() as at, is_at_home() as is_home,
      h.place = database_place() as is_same_place, h.id as home_id, h.how
    from (select) one left join database_home h on true`)
}

export const deleteHeartbeat = (tx: Tx, process: string) =>
  tx.query(sql.type(object())`delete from process_marks where process = ${process}`)

/** Deletes the heartbeats of processes that were killed days ago. */
export const deleteOldMarks = (tx: Tx, days: number) =>
  tx.query(sql.type(object())`
    delete from process_marks where at < now() - make_interval(days => ${days})`)

/** Makes this the original database, if no process has started yet. */
export const claimAsOriginal = (tx: Tx, id: string) =>
  tx.query(sql.type(object())`
    insert into database_home (id, place, timeline, how, decided_at)
    select ${id}, database_place(), database_timeline(), 'begun', now() where database_timeline() is not null
    on conflict do nothing`)

const lockedRow = row({ home_id: string(), is_home: boolean() })

/** Locks and returns the identity. Null before any process has started. */
export const lockIdentity = (tx: Tx) =>
  tx.maybeOne(sql.type(lockedRow)`
    select id as home_id, is_at_home() as is_home from database_home for update`)

/** Makes this the original database from now on, and stores how that was decided. */
export const claimDatabase = (tx: Tx, id: string, how: 'continued' | 'restored') =>
  tx.query(sql.type(object())`
    update database_home
    set id = ${id}, place = database_place(), timeline = database_timeline(), how = ${how}, decided_at = now()`)

/**
 * Writes 520 kB to disk, with a sort that exceeds its memory. Few large rows, because the sort of 10,000 small ones
 * needed 20 ms of CPU time every five seconds. @throws the server's disk_full
 */
export const writeToDisk = (database: Database): Promise<unknown> =>
  database.query(sql.type(object())`
    do $$ begin
      set local work_mem = '64kB';
      perform n from (select n from generate_series(1, 500) n order by repeat(md5(n::text), 30) offset 499) sorted;
    end $$`)
