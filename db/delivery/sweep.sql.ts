/** Queries for the sweep, which scans all waiting rows and finds those that have lost their job. */
import { sql } from 'slonik'
import { array, string } from 'yup'
import { isSuspended, wasResumedSince } from '../accounts/teams/teams.sql.ts'
import type { Deliverable } from '../channels/channel.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { refRow, row } from '../postgres/rows.ts'
import { isOfNewerQueue, openJobsWithin, withoutJob } from '../queue/dead-letters.sql.ts'
import { gaveUp } from './requeue.sql.ts'

type IdRange = { after: string; size: number }

const stretchRow = row({
  lost: array(refRow),
  /** Where the next batch starts. Null at the end. */
  next: string().nullable(),
})

/** Returns the condition that a row `m` has no job and hasn't failed. */
async function hasLostJob(tx: Tx, channel: Deliverable) {
  const isNewer = await isOfNewerQueue(tx, sql.fragment`m.id`)
  return sql.fragment`
    ${withoutJob(channel.job, sql.fragment`m.id`)} and not ${isNewer} and not ${gaveUp(channel)}`
}

/**
 * Returns a batch of lost rows, oldest first: accepted before `before`, unfinished, without a job, and not failed.
 * The limit only counts these. Rows of a suspended team are skipped, and after the resume, all of them without a job
 * count as lost. Rows with the same time stay in one batch, so that the time marks where the next one starts.
 * A batch reads the jobs between its lowest and highest ID in one scan, and looks up only rows without one. A full join
 * is never a nested loop, however few jobs the planner expects.
 */
export async function lostMessages(
  tx: Tx,
  channel: Deliverable,
  { after, size }: IdRange,
  { before, limit }: { before: Date; limit: number },
) {
  const hasLost = await hasLostJob(tx, channel)
  return tx.one(sql.type(stretchRow)`
    with m as materialized (
      select team_id, id, created_at, coalesce(requeued_at, created_at) as since, tries_from,
        ${channel.job_of} = ${channel.job} as is_own
      from (
        select * from ${channel.rows} where unfinished and created_at > ${after}::timestamptz
        order by created_at fetch first ${size} rows with ties) r
    ), jobs as (
      ${openJobsWithin(channel.job, sql.fragment`m`)}
    ), without_job as materialized (
      select m.* from m full join jobs on jobs.id = m.id where jobs.id is null
    ), lost as (
      select team_id, id, created_at from without_job m
      where is_own and not ${isSuspended(sql.fragment`m.team_id`)}
        and (created_at < ${sql.timestamp(before)} and since < ${sql.timestamp(before)}
          or ${wasResumedSince(sql.fragment`m.team_id`, sql.fragment`m.since`)})
        and ${hasLost}
      order by created_at limit ${limit}
    )
    select (select case when count(*) >= ${size} then max(created_at)::text end from m) as next,
      coalesce(
        (select json_agg(json_build_object('team_id', team_id, 'id', id) order by created_at) from lost), '[]') as lost`)
}

const slicePassedRow = row({
  lost: array(row({ id: string(), sender: string().nullable() })),
  /** The last row of a full slice, or null. */
  last: string().nullable(),
})

/** Finds the next `size` waiting messages of a team after an ID, and those of them without a job. */
export async function lostOfTeam(
  tx: Tx,
  channel: Deliverable,
  { team_id, after, size }: { team_id: string; after: string; size: number },
) {
  const hasLost = await hasLostJob(tx, channel)
  return tx.one(sql.type(slicePassedRow)`
    with m as materialized (
      select team_id, id, created_at, tries_from, ${channel.sender_of} as sender,
        ${channel.job_of} = ${channel.job} as is_own
      from ${channel.rows}
      where team_id = ${team_id} and unfinished and id > ${after} order by id limit ${size}
    )
    select (select case when count(*) >= ${size} then max(id::text) end from m) as last,
      coalesce((
        select json_agg(json_build_object('id', id, 'sender', sender) order by id) from m
        where is_own and ${hasLost}), '[]') as lost`)
}

const placeRow = row({ place: string() })
const START = '-infinity'

/** Locks the cursor of the sweep. Only one process scans at a time. The others skip it. */
export async function lockCursor(tx: Tx, channel: Deliverable): Promise<string | null> {
  const kind = `sweep:${channel.job}`
  await tx.query(sql.unsafe`
    insert into upkeep (kind, done_until) values (${kind}, ${START}) on conflict do nothing`)
  const row = await tx.maybeOne(sql.type(placeRow)`
    select done_until::text as place from upkeep where kind = ${kind} for update skip locked`)
  return row?.place ?? null
}

/** Stores the cursor. Null: start again. */
export const saveCursor = (tx: Tx, channel: Deliverable, place: string | null) =>
  tx.query(sql.unsafe`
    update upkeep set done_until = ${place ?? START}::timestamptz
    where kind = ${`sweep:${channel.job}`} and done_until <> ${place ?? START}::timestamptz`)
