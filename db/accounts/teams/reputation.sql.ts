/** The reputation of teams: the pause of bulk email, and the last warning. */
import { sql } from 'slonik'
import { mixed, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, idRow, row } from '../../postgres/rows.ts'
import type { BulkPause } from './reputation.ts'

const pauseRow = row({ since: string(), pause: mixed<BulkPause>() })

/** Returns the pause of a team's bulk email, or null. */
export const readBulkPause = (tx: Tx, teamId: string) =>
  tx.maybeOne(sql.type(pauseRow)`
    select bulk_paused_at as since, bulk_pause as pause from teams
    where id = ${teamId} and bulk_paused_at is not null`)

/** Pauses a team's bulk email. @returns false if it is paused already. */
export async function setBulkPaused(tx: Tx, teamId: string, pause: BulkPause): Promise<boolean> {
  const paused = await tx.any(sql.type(idRow)`
    update teams set bulk_paused_at = service_time(), bulk_pause = ${JSON.stringify(pause)}
    where id = ${teamId} and bulk_paused_at is null returning id`)
  return paused.length > 0
}

/** Ends the pause, and restarts the count. @returns false if bulk email wasn't paused. */
export async function setBulkResumed(tx: Tx, teamId: string): Promise<boolean> {
  const resumed = await tx.any(sql.type(idRow)`
    update teams set bulk_paused_at = null, reputation_from = service_time()
    where id = ${teamId} and bulk_paused_at is not null returning id`)
  return resumed.length > 0
}

/** Records a warning. @returns false if there was one in the last 24 hours. */
export async function setWarned(tx: Tx, teamId: string): Promise<boolean> {
  const warned = await tx.any(sql.type(idRow)`
    update teams set reputation_warned_at = service_time()
    where id = ${teamId} and bulk_paused_at is null
      and coalesce(reputation_warned_at < service_time() - interval '24 hours', true)
    returning id`)
  return warned.length > 0
}

export const countBulkPaused = (tx: Tx) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from teams where bulk_paused_at is not null`)

/** Returns the teams whose bulk email isn't paused. Waits for an uncommitted pause or resume. */
export async function teamsNotPaused(tx: Tx, teamIds: readonly string[]): Promise<ReadonlySet<string>> {
  const teams = await tx.anyFirst(sql.type(idRow)`
    select id from (
      select id, bulk_paused_at from teams where id = any(${sql.array(teamIds, 'uuid')}) order by id for share) t
    where bulk_paused_at is null`)
  return new Set(teams)
}
