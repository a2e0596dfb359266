/**
 * Appends what moved of the figures, of days and of broadcasts, as a part of the statement that moves the rows: no
 * counter is updated, so nobody waits for anybody, and nothing is counted that was rolled back.
 * Promises: internal mail moves nothing, as it is in no team's figures. Everything that stores, deletes or moves rows
 * of a channel from one status to another goes through here.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import type { Channel } from '../../channels/channel.sql.ts'

/** From which status to which a row has moved; null: it was not there, or is no more. */
type Move = { was: FragmentSqlToken | null; became: FragmentSqlToken | null }

/** What `appendMoves` needs to know of each row, to be returned by what moves it. @param row its alias. */
export const movedColumns = (
  { customers, broadcast }: Channel,
  row: FragmentSqlToken,
  { was, became }: Move,
) =>
  sql.fragment`${row}.team_id, ${row}.created_at, ${broadcast} as broadcast_id,
    ${was ?? sql.fragment`null::text`} as was, ${became ?? sql.fragment`null::text`} as became, ${customers} as counts`

/** In the place of a channel: what moved of broadcasts alone. */
export const OF_BROADCASTS = 'broadcast'

/** A part of the query that appends skips. @param rows have team_id, broadcast_id, and n: 1 for noted, -1 for gone. */
export const appendSkips = (rows: FragmentSqlToken) => sql.fragment`
  insert into moved_figures (team_id, channel, day, broadcast_id, status, count)
  select team_id, ${OF_BROADCASTS}, current_date, broadcast_id, 'skipped', sum(n) from ${rows}
  group by team_id, broadcast_id having sum(n) <> 0`

/** The statement that appends the moves. @param rows a part of the query that has `movedColumns`. */
export const appendMoves = ({ name }: Pick<Channel, 'name'>, rows: FragmentSqlToken) => sql.fragment`
  insert into moved_figures (team_id, channel, day, broadcast_id, status, count)
  select r.team_id, ${name}, (r.created_at at time zone 'UTC')::date, r.broadcast_id, v.status, sum(v.n)
  from ${rows} r cross join lateral (values (r.was, -1), (r.became, 1)) v (status, n)
  where r.counts and v.status is not null and r.was is distinct from r.became
  group by r.team_id, 3, r.broadcast_id, v.status having sum(v.n) <> 0`
