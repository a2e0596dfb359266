/** Chooses the properties that a team's list of contacts shows as columns, for all its members. */

import { type By, record } from '../../accounts/audit/record.ts'
import { setContactColumns } from '../../accounts/teams/teams.sql.ts'
import { invalidField } from '../../errors.ts'
import { codePoints } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import { LONGEST_KEY } from './fields.ts'

/** More would leave no space for the address. */
export const MAX_COLUMNS = 4

/** @throws RequestError bad_request for too many columns, or a name that is too long for a property. */
export async function chooseContactColumns(by: By, teamId: string, names: readonly string[]): Promise<void> {
  const chosen = [...new Set(names)]
  if (chosen.length > MAX_COLUMNS) throw invalidField('columns', TEXTS.tooManyColumns, { most: MAX_COLUMNS })
  if (chosen.some((name) => codePoints(name) > LONGEST_KEY))
    throw invalidField('columns', TEXTS.columnTooLong, { most: LONGEST_KEY })
  await setContactColumns(by.tx, teamId, chosen.length > 0 ? chosen : null)
  await record(by, { team_id: teamId, action: 'team.columns', subject: chosen.join(', '), detail: '' })
}
