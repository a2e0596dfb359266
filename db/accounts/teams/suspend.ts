/**
 * Suspends a team and lets it go on.
 * Promises: from the next request on every credential of a suspended team is refused, in every process; what it has
 * queued waits, and goes out once it may go on. Nothing is deleted; the audit trail says who did it.
 */
import { type By, record } from '../audit/record.ts'
import { setResumed, setSuspended, type TeamRow } from './teams.sql.ts'
import { requireTeam } from './view.ts'

/** Suspends the team; suspending it again changes nothing. @throws RequestError not_found. */
export async function suspendTeam(by: By, teamId: string): Promise<TeamRow> {
  const { tx, now } = by
  const { name } = await requireTeam(tx, teamId)
  await setSuspended(tx, teamId, now)
  await record(by, { team_id: teamId, action: 'team.suspend', subject: name })
  return requireTeam(tx, teamId)
}

/** Ends a suspension; a team in good standing stays so. @throws RequestError not_found. */
export async function resumeTeam(by: By, teamId: string): Promise<TeamRow> {
  const { tx } = by
  const { name } = await requireTeam(tx, teamId)
  await setResumed(tx, teamId)
  await record(by, { team_id: teamId, action: 'team.resume', subject: name })
  return requireTeam(tx, teamId)
}
