/** Queries for emails that came as items of a batch. */
import { type FragmentSqlToken, sql } from 'slonik'
import type { Tx } from '../../postgres/pool.ts'
import { idRow } from '../../postgres/rows.ts'

export const waitingBatchItems = (teamId: string): FragmentSqlToken => sql.fragment`
  select s.id from email_states s join accepted_emails a on a.team_id = s.team_id and a.id = s.id
  where s.team_id = ${teamId} and s.unfinished and a.batch`

/** Returns the teams whose bulk email isn't paused. Waits for an uncommitted pause or resume. */
export async function teamsNotPaused(tx: Tx, teamIds: readonly string[]): Promise<ReadonlySet<string>> {
  const teams = await tx.anyFirst(sql.type(idRow)`
    select id from (
      select id, bulk_paused_at from teams where id = any(${sql.array(teamIds, 'uuid')}) order by id for share) t
    where bulk_paused_at is null`)
  return new Set(teams)
}
