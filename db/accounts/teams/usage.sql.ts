/**
 * Counts a team's stored messages in a period. An ID contains its row's created_at, so that a count reads one range
 * of the primary key. Runs when a period changes, never in a request.
 */

import { type FragmentSqlToken, sql } from 'slonik'
import { CHANNELS } from '../../channels/channels.sql.ts'
import type { ChannelFacts } from '../../channels/list.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow } from '../../postgres/rows.ts'
import { firstIdAt } from '../../validation/ids.ts'
import { fromKeys } from '../../validation/keys.ts'
import type { Period } from '../plans/period.ts'

type Counted = ChannelFacts['quota']['name']

const countRows = (tx: Tx, teamId: string, table: FragmentSqlToken, { start, end }: Period) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*) as count from ${table}
    where team_id = ${teamId} and id >= ${firstIdAt(start)} and id < ${firstIdAt(end)}
      and created_at >= ${sql.timestamp(start)} and created_at < ${sql.timestamp(end)}`)

/** Counts a team's stored messages of a period, by quota. */
export async function usageIn(tx: Tx, teamId: string, period: Period): Promise<Record<Counted, number>> {
  const used = fromKeys(
    CHANNELS.map(({ quota }) => quota.name),
    () => 0,
  )
  for (const { quota, rows } of CHANNELS) used[quota.name] = await countRows(tx, teamId, rows, period)
  return used
}
