/** Alerts for teams whose WhatsApp messages wait for the default number, because no worker sends from it. */

import { numberOfTeam, waitsForDefault } from '../../../db/messages/whatsapp/numbers.sql.ts'
import { liveProcesses } from '../../../db/stats/fleet/fleet.sql.ts'
import { SILENT_AFTER_S } from '../../../db/stats/fleet/fleet.ts'
import { isTaken } from '../../../db/stats/fleet/scale.ts'
import type { Alert } from '../components/section.ts'
import type { PageDeps } from '../server/deps.ts'
import type { TeamRequest } from '../server/page.ts'

/** The alert for operators if no worker has ever stored a default number. */
export const NO_DEFAULT_NUMBER: Alert = {
  tone: 'warn',
  title: 'The workers have no default number, so messages of teams without their own number wait',
  text: 'Set WHATSAPP_ACCESS_TOKEN and WHATSAPP_PHONE_NUMBER_ID on a worker, or add a number and give it to the team.',
}

/** Returns the alert of a team. Null if a worker sends from the default number, no worker runs, or it isn't needed. */
export async function defaultNumberAlert(
  { team, person }: TeamRequest,
  { database }: PageDeps,
): Promise<Alert | null> {
  if (team.test) return null
  const processes = await liveProcesses(database, SILENT_AFTER_S)
  const workers = processes.filter(({ kind }) => kind === 'worker')
  if (isTaken('deliver-whatsapp', workers)) return null
  const waits = await waitsForDefault(database, team.id)
  if (!waits && (await numberOfTeam(database, team.id))?.is_default !== true) return null
  return {
    tone: waits ? 'bad' : 'warn',
    title: `${waits ? '' : 'New '}WhatsApp messages wait, because no worker sends from the default number`,
    text: person.operator
      ? 'Set WHATSAPP_ACCESS_TOKEN and WHATSAPP_PHONE_NUMBER_ID on a worker. For new messages, you can also give the team its own number.'
      : 'An operator can set up the number. Waiting messages are sent then.',
    link: person.operator ? { href: '/operator/numbers', label: 'Show numbers' } : undefined,
  }
}
