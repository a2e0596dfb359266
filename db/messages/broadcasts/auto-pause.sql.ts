/** Queries for pausing broadcasts automatically: counts of sent emails, bounces and complaints. */
import { sql } from 'slonik'
import { type InferType, mixed, number, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { countOf, findStats } from '../../stats/daily/broadcasts.sql.ts'
import type { Brake, BroadcastKey } from './broadcasts.sql.ts'

const tally = row({
  /** Emails that no longer wait. */
  left: number(),
  bounced: number(),
  complained: number(),
})
export type Tally = InferType<typeof tally>

const brakedRow = row({ braked: mixed<Tally>().nullable() })

/** Returns the current counts of a broadcast, and those at its last auto-pause. */
export async function readTallies(tx: Tx, { team_id, id }: BroadcastKey) {
  const { braked } = await tx.one(sql.type(brakedRow)`
    select braked_at_figures as braked from broadcasts where team_id = ${team_id} and id = ${id}`)
  const stats = await findStats(tx, team_id, [id])
  const now = {
    left: countOf(stats, 'made') - countOf(stats, 'queued'),
    bounced: countOf(stats, 'bounced'),
    complained: countOf(stats, 'complained'),
  }
  return { now, braked: braked ?? { left: 0, bounced: 0, complained: 0 } }
}

export const saveAutoPaused = (tx: Tx, { team_id, id }: BroadcastKey, now: Tally, brake: Brake) =>
  tx.query(sql.unsafe`
    update broadcasts set braked_at_figures = ${JSON.stringify(now)}, brake = ${JSON.stringify(brake)}
    where team_id = ${team_id} and id = ${id}`)

const stoppedRow = row({
  team_id: string(),
  team: string(),
  id: string(),
  name: string(),
  state_reason: string(),
  brake: mixed<Brake>().nullable(),
})

/** Returns automatically paused broadcasts of a team, or of all teams (null), newest first. */
export const stoppedBroadcasts = (tx: Tx, teamId: string | null, limit: number) =>
  tx.any(sql.type(stoppedRow)`
    select b.team_id, t.name as team, b.id, b.name, b.state_reason, b.brake
    from broadcasts b join teams t on t.id = b.team_id
    where b.state_reason is not null and ${allOf(teamId !== null && sql.fragment`b.team_id = ${teamId}`)}
    order by b.id desc limit ${limit}`)
