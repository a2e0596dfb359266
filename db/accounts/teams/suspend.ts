/**
 * Suspends and resumes a team. From the next request on, every process rejects all its credentials. Its messages
 * wait, and are sent within seconds of the resume (delivery/resume.ts).
 */
import { DELIVERIES } from '../../channels/channels.sql.ts'
import { WEBHOOK } from '../../channels/webhook.sql.ts'
import { type By, record } from '../audit/record.ts'
import { insertResumedTeam } from './resumed.sql.ts'
import { setResumed, setSuspended, type TeamRow } from './teams.sql.ts'
import { requireTeam } from './view.ts'

/** Suspends a team. If it already is, only the audit log gets an entry. @throws RequestError not_found. */
export async function suspendTeam(by: By, teamId: string): Promise<TeamRow> {
  const { tx, now } = by
  const { name } = await requireTeam(tx, teamId)
  await setSuspended(tx, teamId, now)
  await record(by, { team_id: teamId, action: 'team.suspend', subject: name })
  return requireTeam(tx, teamId)
}

/** Ends a suspension. Without one, only the audit log gets an entry. @throws RequestError not_found. */
export async function resumeTeam(by: By, teamId: string): Promise<TeamRow> {
  const { tx } = by
  const { name, test } = await requireTeam(tx, teamId)
  const queues = DELIVERIES.filter((each) => each.test === test || each.name === WEBHOOK.name)
  if (await setResumed(tx, teamId))
    await insertResumedTeam(
      tx,
      teamId,
      queues.map(({ job }) => job),
    )
  await record(by, { team_id: teamId, action: 'team.resume', subject: name })
  return requireTeam(tx, teamId)
}
