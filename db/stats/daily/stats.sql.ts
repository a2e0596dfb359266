/**
 * Rows of daily_figures and hourly_figures: how many of the messages accepted on a day, or within an hour of the last
 * two days, stand at which status, as the sum of the deltas. Reading adds what is not folded yet, so that a figure is
 * never behind its rows. Broadcasts' are broadcasts.sql.ts's.
 */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Channel } from '../../channels/channel.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { addToBroadcasts } from './broadcasts.sql.ts'

/** Waits for a fold in progress; the next statement sees what it did. */
export const lockFigures = (tx: Tx) =>
  tx.query(sql.unsafe`select pg_advisory_xact_lock(hashtext('daily_figures'))`)

/** What is kept by the hour: more than is shown, so that no hour that is shown has lost a part. */
const HOURS_KEPT = sql.fragment`now() - interval '2 days'`

const foldedRow = row({ folded: number() })

/** Adds up to `limit` deltas to their figures. @returns how many there were. */
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

/** Forgets up to `limit` figures of hours that are over for two days. @returns how many. */
export async function deleteHours(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from hourly_figures where (team_id, channel, hour, status) in (
      select team_id, channel, hour, status from hourly_figures
      where hour < ${HOURS_KEPT} order by hour limit ${limit})`)
  return rowCount
}

/** Forgets a batch of the figures of days before this one. @returns how many. */
export async function deleteFigures(tx: Tx, before: Date, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from daily_figures where (team_id, channel, day, status) in (
      select team_id, channel, day, status from daily_figures
      where day < ${before.toISOString().slice(0, 10)}::date order by day limit ${limit})`)
  return rowCount
}

const dayRow = row({ day: string().nullable() })

/** The first day that a team's figures of this channel tell of; null before the first message. */
export const firstDay = (tx: Tx, teamId: string, { name: channel }: Channel) =>
  tx.oneFirst(sql.type(dayRow)`
    select least(
      (select min(day) from daily_figures where team_id = ${teamId} and channel = ${channel}),
      (select min((hour at time zone 'UTC')::date) from figure_deltas
        where team_id = ${teamId} and channel = ${channel}))::text as day`)

const figureRow = row({ day: string(), status: string(), count: number() })
export type FigureRow = InferType<typeof figureRow>

/** A team's figures since a day, which counts. */
export async function figuresSince(tx: Tx, teamId: string, { name: channel }: Channel, since: Date) {
  const from = since.toISOString().slice(0, 10)
  return tx.any(sql.type(figureRow)`
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
/** @param hour when it begins, as ISO 8601. */
export type HourRow = InferType<typeof hourRow>

/** A team's figures by the hour since the beginning of one, of the last two days. */
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
