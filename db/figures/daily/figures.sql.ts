/**
 * Rows of daily_figures: how many of the messages accepted on a day stand at which status, as the sum of what moved.
 * Reading adds what is not folded yet, so that a figure is never behind its rows. Broadcasts' are broadcasts.sql.ts's.
 */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Channel } from '../../channels/channel.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { firstIdAt } from '../../text/ids.ts'
import { addToBroadcasts } from './broadcasts.sql.ts'
import { OF_BROADCASTS } from './moved.sql.ts'

const DAY = 86_400_000

const doneRow = object({ due: string().defined() })

/** Waits for a fold or recount in progress; the next statement sees what it did. */
export async function takeTurn(tx: Tx): Promise<void> {
  await tx.query(sql.unsafe`select pg_advisory_xact_lock(hashtext('daily_figures'))`)
}

const foldedRow = object({ folded: number().defined() })

/** Adds up to `limit` moves to their figures. @returns how many there were. */
export async function foldMoves(tx: Tx, limit: number): Promise<number> {
  const { folded } = await tx.one(sql.type(foldedRow)`
    with taken as (
      delete from moved_figures
      where (team_id, id) in (select team_id, id from moved_figures limit ${limit} for update skip locked)
      returning team_id, channel, day, broadcast_id, status, count
    ), of_broadcasts as (
      select * from taken where broadcast_id is not null
    ), of_days as (
      select * from taken where channel <> ${OF_BROADCASTS}
    ), added_to_broadcasts as (
      ${addToBroadcasts(sql.fragment`of_broadcasts`)}
    ), added as (
      insert into daily_figures as f (team_id, channel, day, status, count)
      select team_id, channel, day, status, sum(count) from of_days
      where team_id in (select id from teams)
      group by team_id, channel, day, status having sum(count) <> 0
      order by team_id, channel, day, status
      on conflict (team_id, channel, day, status) do update set count = f.count + excluded.count
    )
    select count(*) as folded from taken`)
  return folded
}

/**
 * Counts one day by the rows themselves, each team's part by its own key. Rows and their moves are seen as of one
 * moment, so the day's moves until then are in what is counted. To be called in one's turn.
 */
export async function countDay(
  tx: Tx,
  { name: channel, rows, customers }: Channel,
  day: Date,
): Promise<void> {
  const until = new Date(day.getTime() + DAY)
  const date = day.toISOString().slice(0, 10)
  await tx.query(sql.unsafe`
    with counted as (
      select t.id as team_id, m.status, m.count
      from teams t cross join lateral (
        select status, count(*) as count from ${rows}
        where team_id = t.id and id >= ${firstIdAt(day)} and id < ${firstIdAt(until)} and ${customers}
        group by status) m
    ), moved as (
      delete from moved_figures where channel = ${channel} and day = ${date}
      returning team_id, broadcast_id, status, count
    ), of_broadcasts as (
      ${addToBroadcasts(sql.fragment`moved`)}
    ), gone as (
      delete from daily_figures f
      where channel = ${channel} and day = ${date}
        and not exists (select from counted c where c.team_id = f.team_id and c.status = f.status)
    )
    insert into daily_figures as f (team_id, channel, day, status, count)
    select team_id, ${channel}, ${date}::date, status, count from counted
    on conflict (team_id, channel, day, status) do update set count = excluded.count
    where f.count <> excluded.count`)
}

/** Whether the last days have to be counted once more, as a migration has it; it is not asked for again. */
export async function takeRecount(tx: Tx): Promise<boolean> {
  const due = await tx.maybeOne(sql.type(doneRow)`
    delete from upkeep where kind = 'figures' and done_until <= now() returning done_until as due`)
  return due !== null
}

/** Whether a team has ever had a message accepted on this channel. */
export const hasFigures = async (tx: Tx, teamId: string, { name: channel }: Channel): Promise<boolean> =>
  tx.exists(sql.type(object())`
    select from daily_figures where team_id = ${teamId} and channel = ${channel}
    union all select from moved_figures where team_id = ${teamId} and channel = ${channel}`)

const figureRow = object({
  day: string().defined(),
  status: string().defined(),
  count: number().defined(),
})
export type FigureRow = InferType<typeof figureRow>

/** A team's figures since a day, which counts. */
export async function figuresSince(
  tx: Tx,
  teamId: string,
  { name: channel }: Channel,
  since: Date,
): Promise<readonly FigureRow[]> {
  const from = since.toISOString().slice(0, 10)
  return tx.any(sql.type(figureRow)`
    select day::text, status, sum(count) as count
    from (
      select channel, day, status, count from daily_figures where team_id = ${teamId}
      union all
      select channel, day, status, count from moved_figures where team_id = ${teamId}) f
    where channel = ${channel} and day >= ${from}
    group by day, status having sum(count) <> 0
    order by day, status`)
}
