/**
 * Suspends a team and lets it go on.
 * Promises: from the next request on every credential of a suspended team is refused, in every process; what it has
 * queued waits, and goes out once it may go on. Nothing is deleted.
 */
import type { At } from '../../postgres/pool.ts'
import { setResumed, setSuspended, type TeamRow } from './teams.sql.ts'
import { teamOrRefusal } from './view.ts'

/** Suspends the team; suspending it again changes nothing. @throws Refusal not_found. */
export async function suspendTeam({ tx, now }: At, teamId: string): Promise<TeamRow> {
  await teamOrRefusal(tx, teamId)
  await setSuspended(tx, teamId, now)
  return teamOrRefusal(tx, teamId)
}

/** Ends a suspension; a team in good standing stays so. @throws Refusal not_found. */
export async function resumeTeam({ tx }: Pick<At, 'tx'>, teamId: string): Promise<TeamRow> {
  await teamOrRefusal(tx, teamId)
  await setResumed(tx, teamId)
  return teamOrRefusal(tx, teamId)
}
