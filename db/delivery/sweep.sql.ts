/**
 * The queries behind the walk through all that waits, which finds what has lost its job.
 * Promises: one part of it reads a fixed number of rows and their jobs, however much waits.
 */
import { sql } from 'slonik'
import { array, string } from 'yup'
import { isSuspended, wasResumedSince } from '../accounts/teams/teams.sql.ts'
import type { Deliverable } from '../channels/channel.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { refRow, row } from '../postgres/rows.ts'
import { isOfNewerQueue, withoutJob } from '../queue/dead-letters.sql.ts'
import { gaveUp } from './requeue.sql.ts'

/** A part of the walk through what waits: `size` rows, those that follow `after`. */
type IdRange = { after: string; size: number }

const stretchRow = row({
  lost: array(refRow),
  /** Where the next part begins; null when this was the last. */
  next: string().nullable(),
})

/** Returns the condition that a row `m` has neither a job nor been given up. */
async function hasLostJob(tx: Tx, channel: Deliverable) {
  const isNewer = await isOfNewerQueue(tx, sql.fragment`m.id`)
  return sql.fragment`
    ${withoutJob(channel.job, sql.fragment`m.id`)} and not ${isNewer} and not ${gaveUp(channel)}`
}

/**
 * In one part of all rows that wait: those accepted before `before` whose delivery is unfinished and that have neither
 * a job nor been given up, oldest first. The limit counts these alone, so a lost one is found however many wait or were
 * given up. A suspended team's rows stay as they are; once the team is resumed, all of them without a job count as
 * lost, however young. Rows of one moment are never divided, so that it can be said where the next part begins.
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
      select team_id, id, created_at, requeued_at, tries_from from ${channel.rows}
      where unfinished and ${channel.job_of} = ${channel.job} and created_at > ${after}::timestamptz
      order by created_at fetch first ${size} rows with ties
    ), lost as (
      select team_id, id, created_at from m
      where not ${isSuspended(sql.fragment`m.team_id`)}
        and (created_at < ${sql.timestamp(before)} and coalesce(requeued_at, created_at) < ${sql.timestamp(before)}
          or ${wasResumedSince(sql.fragment`m.team_id`, sql.fragment`coalesce(m.requeued_at, m.created_at)`)})
        and ${hasLost}
      order by created_at limit ${limit}
    )
    select (select case when count(*) >= ${size} then max(created_at)::text end from m) as next,
      coalesce(
        (select json_agg(json_build_object('team_id', team_id, 'id', id) order by created_at) from lost), '[]') as lost`)
}

const slicePassedRow = row({
  lost: array(row({ id: string(), sender: string().nullable() })),
  /** The last one of a full slice; null if no more follow. */
  last: string().nullable(),
})

/** Finds the next `size` waiting messages of a team after an id, and those of them that have no job. */
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

/** Where the walk through what waits goes on. Only one process looks at a time: the others pass. */
export async function lockCursor(tx: Tx, channel: Deliverable): Promise<string | null> {
  const kind = `sweep:${channel.job}`
  await tx.query(sql.unsafe`
    insert into upkeep (kind, done_until) values (${kind}, ${START}) on conflict do nothing`)
  const row = await tx.maybeOne(sql.type(placeRow)`
    select done_until::text as place from upkeep where kind = ${kind} for update skip locked`)
  return row?.place ?? null
}

/** Notes how far the walk has come; null: it begins again. */
export const saveCursor = (tx: Tx, channel: Deliverable, place: string | null) =>
  tx.query(sql.unsafe`
    update upkeep set done_until = ${place ?? START}::timestamptz
    where kind = ${`sweep:${channel.job}`} and done_until <> ${place ?? START}::timestamptz`)
