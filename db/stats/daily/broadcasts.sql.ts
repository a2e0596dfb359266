/**
 * The stats of broadcasts: emails by status and skipped contacts, as sums of deltas. Reads add the deltas that aren't
 * folded yet. Emails that retention deleted still count. Emails that users deleted don't.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { number, object, string } from 'yup'
import { EMAIL_LADDER } from '../../channels/email.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

/** The stats of a broadcast: emails created, contacts skipped, and emails by status. */
export const BROADCAST_STATS = ['made', 'skipped', ...EMAIL_LADDER] as const
export type BroadcastStat = (typeof BROADCAST_STATS)[number]

const COUNTED_FIGURES = BROADCAST_STATS.filter((figure) => figure !== 'made')

const figureRow = row({ broadcast_id: string(), figure: string().oneOf(COUNTED_FIGURES), count: number() })

type StatOf = { broadcast_id: string; figure: BroadcastStat; count: number }

/** Returns the stats of broadcasts. Zeros can be absent. */
export async function findStats(tx: Tx, teamId: string, ids: readonly string[]): Promise<StatOf[]> {
  const those = sql.array(ids, 'uuid')
  const counted = await tx.any(sql.prepared('figures_of_broadcasts', figureRow)`
    select broadcast_id, figure, sum(count)::integer as count from (
      select broadcast_id, figure, count from broadcast_figures
      where team_id = ${teamId} and broadcast_id = any(${those})
      union all
      select broadcast_id, status, count from figure_deltas
      where team_id = ${teamId} and broadcast_id = any(${those})) f
    group by broadcast_id, figure`)
  const made = new Map<string, number>()
  for (const { broadcast_id, figure, count } of counted)
    if (figure !== 'skipped') made.set(broadcast_id, (made.get(broadcast_id) ?? 0) + count)
  return [
    ...counted,
    ...[...made].map(([broadcast_id, count]) => ({ broadcast_id, figure: 'made' as const, count })),
  ]
}

/** Returns the count of one stat. */
export const countOf = (stats: readonly StatOf[], figure: BroadcastStat): number =>
  stats.find((each) => each.figure === figure)?.count ?? 0

/** The part of the fold that adds the deltas of broadcasts. @param deltas rows of figure_deltas. */
export const addToBroadcasts = (deltas: FragmentSqlToken) => sql.fragment`
  insert into broadcast_figures as f (team_id, broadcast_id, figure, count)
  select team_id, broadcast_id, status, sum(count) from ${deltas}
  where (team_id, broadcast_id) in (select team_id, id from broadcasts)
  group by team_id, broadcast_id, status having sum(count) <> 0
  order by team_id, broadcast_id, status
  on conflict (team_id, broadcast_id, figure) do update set count = f.count + excluded.count`

/** Keeps emails that retention deletes in the stats of their broadcasts. @param gone the emails with their status. */
export async function keepStats(
  tx: Tx,
  teamId: string,
  gone: readonly { broadcast_id: string | null; status: string }[],
): Promise<void> {
  const kept = gone.filter(({ broadcast_id }) => broadcast_id !== null)
  if (kept.length === 0) return
  await tx.query(sql.type(object())`
    insert into figure_deltas (team_id, channel, hour, broadcast_id, status, count)
    select ${teamId}, 'broadcast', now(), broadcast_id, status, count(*)
    from ${rowsOf('kept', { broadcast_id: 'uuid', status: 'text' }, kept)} group by broadcast_id, status`)
}
