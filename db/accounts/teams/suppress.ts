/** Chooses which suppressions stop a team's transactional email. */
import { type By, record } from '../audit/record.ts'
import type { SuppressTransactional } from './suppress-transactional.ts'
import { readSuppressTransactional, setSuppressTransactional } from './teams.sql.ts'
import { requireTeam, showTeam, type TeamView } from './view.ts'

/** @throws RequestError not_found. */
export async function chooseSuppressTransactional(
  by: By,
  teamId: string,
  which: SuppressTransactional,
): Promise<TeamView> {
  const team = await requireTeam(by.tx, teamId)
  const before = await readSuppressTransactional(by.tx, teamId)
  if (before !== which) {
    await setSuppressTransactional(by.tx, teamId, which)
    const detail = `suppress_transactional: ${which}, was ${before}`
    await record(by, { team_id: teamId, action: 'team.set', subject: team.name, detail })
  }
  return showTeam(by.tx, teamId)
}
