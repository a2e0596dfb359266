/** Assigns another WhatsApp number to a team. Messages already accepted keep their number. */

import { type By, record } from '../../accounts/audit/record.ts'
import { lockAccount } from '../../accounts/teams/limits.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { RequestError, requestError } from '../../errors.ts'
import type { Producer } from '../../queue/producer.ts'
import {
  numberByName,
  numberOfTeam,
  setTeamNumber,
  suspendTemplates,
  waitingElsewhere,
} from './numbers.sql.ts'
import { oldWeb } from './old-web.sql.ts'
import { requestSyncs } from './sync-templates.ts'
import { TEXTS } from './texts.ts'

/** @param name `default`, or another number's. @throws RequestError not_found, invalid_state */
export async function changeTeamNumber(
  { queue, ...by }: By & { queue: Pick<Producer, 'enqueue'> },
  teamId: string,
  name: string,
): Promise<{ team_id: string; number: string; waiting: number }> {
  const { tx, now } = by
  await requireTeam(tx, teamId)
  const number = name === 'default' ? null : await numberByName(tx, name)
  if (name !== 'default' && !number) throw requestError('not_found', TEXTS.noNumber, { name })
  if ((await oldWeb(tx)).is_running) throw new RequestError('invalid_state', TEXTS.oldWeb)
  await lockAccount(tx, teamId)
  const before = await numberOfTeam(tx, teamId)
  if (before?.number !== name) {
    await setTeamNumber(tx, teamId, number?.name ?? null)
    const after = await numberOfTeam(tx, teamId)
    const account_id = after?.account_id ?? null
    if (before?.account_id !== account_id) {
      await suspendTemplates(tx, teamId, account_id, now)
      if (account_id !== null) await requestSyncs({ tx, queue }, [teamId])
    }
    await record(by, { team_id: teamId, action: 'team.number', subject: name, detail: before?.number ?? '' })
  }
  return {
    team_id: teamId,
    number: name,
    waiting: await waitingElsewhere(tx, teamId, number?.phone_number_id ?? null),
  }
}
