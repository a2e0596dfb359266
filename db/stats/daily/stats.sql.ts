/**
 * Stats by day, and by hour for the last two days: accepted messages by status, as sums of deltas. Reads add the
 * deltas that aren't folded yet, so stats are always current.
 */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Channel } from '../../channels/channel.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { addToBroadcasts } from './broadcasts.sql.ts'

/** Waits for a fold in progress. The next statement sees its result. */
export const lockStats = (tx: Tx) =>
  tx.query(sql.unsafe`select pg_advisory_xact_lock(hashtext('daily_figures'))`)

/** How long hours are kept. Longer than they are shown, so that no shown hour is incomplete. */
const HOURS_KEPT = sql.fragment`now() - interval '2 days'`

const foldedRow = row({ folded: number() })

/** Adds up to `limit` deltas to the stats. @returns how many. */
export const foldDeltas = (tx: Tx, limit: number) =>
  tx.oneFirst(sql.type(foldedRow)`
    with taken as (
      delete from figure_deltas
      where (team_id, id) in (select team_id, id from figure_deltas limit ${limit} for update skip locked)
      returning team_id, channel, hour, broadcast_id, status, count
    ), of_broadcasts as (
      select * from taken where broadcast_id is not null
    ), of_days as (
      select * from taken where channel <> 'broadcast'
    ), added_to_broadcasts as (
      ${addToBroadcasts(sql.fragment`of_broadcasts`)}
    ), added as (
      insert into daily_figures as f (team_id, channel, day, status, count)
      select team_id, channel, (hour at time zone 'UTC')::date as day, status, sum(count) from of_days
      where team_id in (select id from teams)
      group by team_id, channel, day, status having sum(count) <> 0
      order by team_id, channel, day, status
      on conflict (team_id, channel, day, status) do update set count = f.count + excluded.count
    ), added_to_hours as (
      insert into hourly_figures as f (team_id, channel, hour, status, count)
      select team_id, channel, hour, status, sum(count) from of_days
      where team_id in (select id from teams) and hour >= ${HOURS_KEPT}
      group by team_id, channel, hour, status having sum(count) <> 0
      order by team_id, channel, hour, status
      on conflict (team_id, channel, hour, status) do update set count = f.count + excluded.count
    )
    select count(*) as folded from taken`)

/** Deletes up to `limit` stats of hours that ended two days ago. @returns how many. */
export async function deleteHours(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from hourly_figures where (team_id, channel, hour, status) in (
      select team_id, channel, hour, status from hourly_figures
      where hour < ${HOURS_KEPT} order by hour limit ${limit})`)
  return rowCount
}

/** Deletes a batch of the stats of days before this one. @returns how many. */
export async function deleteDailyStats(tx: Tx, before: Date, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from daily_figures where (team_id, channel, day, status) in (
      select team_id, channel, day, status from daily_figures
      where day < ${before.toISOString().slice(0, 10)}::date order by day limit ${limit})`)
  return rowCount
}

const dayRow = row({ day: string().nullable() })

/** Returns the first day with stats of this channel, or null before the first message. */
export const firstDay = (tx: Tx, teamId: string, { name: channel }: Channel) =>
  tx.oneFirst(sql.type(dayRow)`
    select least(
      (select min(day) from daily_figures where team_id = ${teamId} and channel = ${channel}),
      (select min((hour at time zone 'UTC')::date) from figure_deltas
        where team_id = ${teamId} and channel = ${channel}))::text as day`)

const statRow = row({ day: string(), status: string(), count: number() })
export type StatRow = InferType<typeof statRow>

/** Returns a team's stats from this day on. */
export async function figuresSince(tx: Tx, teamId: string, { name: channel }: Channel, since: Date) {
  const from = since.toISOString().slice(0, 10)
  return tx.any(sql.type(statRow)`
    select day::text, status, sum(count) as count
    from (
      select channel, day, status, count from daily_figures where team_id = ${teamId}
      union all
      select channel, (hour at time zone 'UTC')::date, status, count from figure_deltas where team_id = ${teamId}) f
    where channel = ${channel} and day >= ${from}
    group by day, status having sum(count) <> 0
    order by day, status`)
}

const hourRow = row({ hour: string(), status: string(), count: number() })
/** @param hour its start, in ISO 8601. */
export type HourRow = InferType<typeof hourRow>

/** Returns a team's stats by hour from this hour on, for the last two days. */
export const hoursSince = (tx: Tx, teamId: string, { name: channel }: Channel, since: Date) =>
  tx.any(sql.type(hourRow)`
    select hour, status, sum(count) as count
    from (
      select channel, hour, status, count from hourly_figures where team_id = ${teamId}
      union all
      select channel, hour, status, count from figure_deltas where team_id = ${teamId}) f
    where channel = ${channel} and hour >= ${sql.timestamp(since)}
    group by hour, status having sum(count) <> 0
    order by hour, status`)
