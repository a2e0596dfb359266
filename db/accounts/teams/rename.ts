/** Renames a team. Its ID and all references stay. The audit log has both names. */

import { checkName } from '../../validation/name.ts'
import { type By, record } from '../audit/record.ts'
import { setTeamName, type TeamRow } from './teams.sql.ts'
import { requireTeam } from './view.ts'

/** @throws RequestError not_found. bad_request for an invalid name. */
export async function renameTeam(by: By, teamId: string, name: string): Promise<TeamRow> {
  checkName(name)
  const before = await requireTeam(by.tx, teamId)
  if (before.name === name) return before
  await setTeamName(by.tx, teamId, name)
  await record(by, { team_id: teamId, action: 'team.rename', subject: name, detail: `was ${before.name}` })
  return { ...before, name }
}
