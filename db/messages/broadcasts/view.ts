/** A broadcast as the API and the CLI show it: its fields, state and stats. */

import type { Tx } from '../../postgres/pool.ts'
import { BROADCAST_STATS, type BroadcastStat, findStats } from '../../stats/daily/broadcasts.sql.ts'
import { fromKeys, pick } from '../../validation/keys.ts'
import { CLOCK_AHEAD_MS } from '../emails/id-ranges.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'

const toView = (row: BroadcastRow, stats: Record<BroadcastStat, number>) => ({
  ...pick(row, 'id', 'team_id', 'name', 'state', 'state_reason', 'template_id'),
  from: row.from_address,
  ...pick(row, 'reply_to', 'subject', 'topic_ids', 'exclude_topic_ids'),
  where: row.conditions,
  ...pick(row, 'variables', 'headers', 'tags', 'rate_per_minute', 'send_at', 'idempotency_key', 'audience'),
  stats,
  ...pick(row, 'created_at', 'updated_at', 'started_at', 'ended_at'),
})

export type BroadcastView = ReturnType<typeof toView>

const NONE = fromKeys(BROADCAST_STATS, () => 0)

/** Returns broadcasts of a team with their stats. */
export async function withStats<B extends { id: string }>(tx: Tx, teamId: string, rows: readonly B[]) {
  const ids = rows.map(({ id }) => id)
  const moved = await findStats(tx, teamId, ids)
  return rows.map((row) => {
    const stats = { ...NONE }
    for (const { broadcast_id, figure, count } of moved) if (broadcast_id === row.id) stats[figure] = count
    return { ...row, stats }
  })
}

export async function broadcastViews(tx: Tx, rows: readonly BroadcastRow[]): Promise<BroadcastView[]> {
  const [first] = rows
  if (!first) return []
  return (await withStats(tx, first.team_id, rows)).map((row) => toView(row, row.stats))
}

export async function broadcastView(tx: Tx, row: BroadcastRow): Promise<BroadcastView> {
  const [view] = await broadcastViews(tx, [row])
  if (!view) throw new Error('one row has one view')
  return view
}

/** True if a count has all emails of a broadcast. While it is sending, its stats are too old to tell. */
export const hasAllEmails = async (tx: Tx, row: BroadcastRow, count: number): Promise<boolean> =>
  row.state !== 'sending' && count >= (await broadcastView(tx, row)).stats.made

/**
 * Returns the time in which a broadcast's emails were accepted, with a margin for different clocks. It starts at the
 * creation, because sending to the rest of the contacts replaces the time of the start.
 */
export function emailTimes({ created_at, walked_at, ended_at }: BroadcastRow): { from: Date; to?: Date } {
  const ends = [walked_at, ended_at].flatMap((at) => (at === null ? [] : [Date.parse(at) + CLOCK_AHEAD_MS]))
  return { from: new Date(created_at), ...(ends.length > 0 && { to: new Date(Math.min(...ends)) }) }
}
