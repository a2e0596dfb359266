/**
 * Rows of daily_figures: how many of the messages accepted on a day stand at which status. Counted from the rows
 * themselves, a day of all teams at a time, so that neither accepting nor settling pays for it.
 */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Channel } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { firstIdAt } from '../text/ids.ts'

const DAY = 86_400_000

/** Counts one day anew, each team's part by its own key; writes what changed alone. */
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
  return tx.any(sql.type(figureRow)`
    select day::text, status, count from daily_figures
    where team_id = ${teamId} and channel = ${channel} and day >= ${since.toISOString().slice(0, 10)}
    order by day, status`)
}
