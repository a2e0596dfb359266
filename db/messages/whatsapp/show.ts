/** Shows WhatsApp messages to operators. */

import { requireTeam } from '../../accounts/teams/view.ts'
import { WHATSAPP } from '../../channels/whatsapp.sql.ts'
import { deliveryState } from '../../delivery/requeue.sql.ts'
import { describeWaiting } from '../../delivery/waiting.ts'
import { requestError } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { shownTimes } from '../../validation/moments.ts'
import { eventsOfMessage } from './events.sql.ts'
import { messageById, type WhatsappRow } from './messages.sql.ts'
import { type MessageFilter, messagesFound } from './search.sql.ts'
import { TEXTS } from './texts.ts'

export type ShownMessage = Awaited<ReturnType<typeof showMessage>>

const view = ({ team_id, id, recipient, due_at: _due, ...row }: WhatsappRow) => {
  const { scheduled_at, expires_at, ...rest } = row
  return { id, team_id, to: recipient, ...rest, ...shownTimes({ scheduled_at, expires_at }) }
}

/** Returns a message, and the state for the actions on its page. @throws RequestError not_found. */
export async function messageWithState({ tx, now }: At, teamId: string, id: string) {
  await requireTeam(tx, teamId)
  const row = await messageById(tx, teamId, id)
  if (!row) throw requestError('not_found', TEXTS.noWhatsapp, { id })
  const rows = await eventsOfMessage(tx, teamId, id)
  const events = rows.map(({ occurred_at: time, code, ...event }) => ({
    ...{ time, ...event },
    ...(code === null ? {} : { code }),
  }))
  const state = await deliveryState(tx, WHATSAPP, { team_id: teamId, id })
  const at = { id, state, recipient: row.recipient, now }
  const waiting = await describeWaiting(tx, at, rows)
  // Absent if nothing is left to deliver.
  return { message: { ...view(row), events, ...(waiting === null ? {} : { waiting }) }, state }
}

/** @throws RequestError not_found. */
export const showMessage = async (...args: Parameters<typeof messageWithState>) =>
  (await messageWithState(...args)).message

/** Lists a team's newest messages, at most `limit`. @throws RequestError not_found. */
export async function listMessages(
  tx: Tx,
  teamId: string,
  { limit, ...filter }: MessageFilter & { limit: number },
) {
  await requireTeam(tx, teamId)
  return (await messagesFound(tx, teamId, filter, { limit })).map(view)
}
