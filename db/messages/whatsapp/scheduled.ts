/**
 * WhatsApp messages that wait for their time: cancelled, or moved to another one, in the caller's transaction.
 * Promises: as emails/scheduled.ts; a call's key goes with the last of its messages.
 */
import { type Caller, record } from '../../accounts/audit/record.ts'
import { freePlaces, lockAccount } from '../../accounts/teams/limits.ts'
import { WHATSAPP } from '../../channels/whatsapp.sql.ts'
import { lockDue } from '../../delivery/schedule.sql.ts'
import { assertMoment, move, waitsNoMore } from '../../delivery/schedule.ts'
import { Refusal } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { isUuid } from '../../text/strings.ts'
import { deleteMessage } from './delete.sql.ts'
import { messageById } from './messages.sql.ts'

const noMessage = (id: string): Refusal => new Refusal('not_found', `there is no WhatsApp message ${id}`)

/** The message's id as it is stored. @throws Refusal not_found */
async function idOf(tx: Tx, teamId: string, given: string): Promise<string> {
  const id = given.toLowerCase()
  if (!isUuid(id) || !(await messageById(tx, teamId, id))) throw noMessage(given)
  return id
}

/** Cancels a message. @throws Refusal not_found, invalid_state */
export async function cancelMessage(by: Caller, team_id: string, given: string): Promise<{ id: string }> {
  const { tx } = by
  const id = await idOf(tx, team_id, given)
  const account = await lockAccount(tx, team_id)
  const waiting = await lockDue(tx, WHATSAPP, { team_id, id })
  if (!waiting) throw noMessage(given)
  if (waiting.due_at === null) throw waitsNoMore()
  const deleted = await deleteMessage(tx, team_id, id)
  await freePlaces(tx, team_id, account, { quota: WHATSAPP.quota.name, deleted })
  await record(by, { team_id, action: 'whatsapp.cancel', subject: id })
  return { id }
}

/** Moves a message to another time. @throws Refusal bad_request, not_found, invalid_state */
export async function rescheduleMessage(by: Caller, team_id: string, given: string, scheduled_at: string) {
  const now = await serviceTime(by.tx)
  assertMoment(scheduled_at, now)
  const id = await idOf(by.tx, team_id, given)
  const moved = await move({ tx: by.tx, now }, WHATSAPP, { team_id, id }, scheduled_at)
  await record(by, { team_id, action: 'whatsapp.reschedule', subject: id, detail: moved.scheduled_at })
  return moved
}
