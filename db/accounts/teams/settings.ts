/** Changes a team's name, and which suppressions stop its transactional email. */
import { checkName } from '../../validation/name.ts'
import { type By, record } from '../audit/record.ts'
import type { SuppressTransactional } from './suppress-transactional.ts'
import {
  readSuppressTransactional,
  setSuppressTransactional,
  setTeamName,
  type TeamRow,
} from './teams.sql.ts'
import { requireTeam, showTeam } from './view.ts'

/**
 * Renames a team. Its ID and all references stay. The audit log has both names.
 * @throws RequestError not_found. bad_request for an invalid name.
 */
export async function renameTeam(by: By, teamId: string, name: string): Promise<TeamRow> {
  checkName(name)
  const before = await requireTeam(by.tx, teamId)
  if (before.name === name) return before
  await setTeamName(by.tx, teamId, name)
  await record(by, { team_id: teamId, action: 'team.rename', subject: name, detail: `was ${before.name}` })
  return { ...before, name }
}

/** @throws RequestError not_found. */
export async function chooseSuppressTransactional(by: By, teamId: string, which: SuppressTransactional) {
  const team = await requireTeam(by.tx, teamId)
  const before = await readSuppressTransactional(by.tx, teamId)
  if (before !== which) {
    await setSuppressTransactional(by.tx, teamId, which)
    const detail = `suppress_transactional: ${which}, was ${before}`
    await record(by, { team_id: teamId, action: 'team.set', subject: team.name, detail })
  }
  return showTeam(by.tx, teamId)
}
