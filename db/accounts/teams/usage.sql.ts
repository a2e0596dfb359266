/**
 * What a team has stored in a period, counted from the rows themselves.
 * Promises: an id's time is its row's created_at, so a count reads one stretch of the primary key. Runs when a period
 * moves, never on the path of a request.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { CHANNELS } from '../../channels/channels.sql.ts'
import type { ChannelFacts } from '../../channels/list.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow } from '../../postgres/rows.ts'
import { firstIdAt } from '../../validation/ids.ts'
import type { Period } from '../plans/period.ts'

/** What messages are counted under. */
type Counted = ChannelFacts['quota']['name']

const countRows = (tx: Tx, teamId: string, table: FragmentSqlToken, { start, end }: Period) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*) as count from ${table}
    where team_id = ${teamId} and id >= ${firstIdAt(start)} and id < ${firstIdAt(end)}
      and created_at >= ${sql.timestamp(start)} and created_at < ${sql.timestamp(end)}`)

/** How many messages of each channel the team stored in a period, by what they are counted under. */
export async function usageIn(tx: Tx, teamId: string, period: Period): Promise<Record<Counted, number>> {
  const used: [Counted, number][] = []
  for (const { quota, rows } of CHANNELS) used.push([quota.name, await countRows(tx, teamId, rows, period)])
  return Object.fromEntries(used) as Record<Counted, number>
}
