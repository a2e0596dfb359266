/**
 * Emails that wait for their time: cancelled, or moved to another one, in the caller's transaction.
 * Promises: a cancelled one goes with its place in the allowance and its key, and is never sent; who did it is in the
 * audit trail. DECISIONS: When.
 */
import { type Caller, record } from '../../accounts/audit/record.ts'
import { freePlaces, lockAccount } from '../../accounts/teams/limits.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import { lockDue } from '../../delivery/schedule.sql.ts'
import { assertMoment, move, waitsNoMore } from '../../delivery/schedule.ts'
import { Refusal } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { parseMailbox } from '../../text/address.ts'
import { isUuid } from '../../text/strings.ts'
import { deleteEmailsById } from './delete.sql.ts'
import { senderOfEmail } from './emails.sql.ts'

/** Who acts: `domain` is the one that a key is bound to. */
type Acting = { team_id: string; domain: string | null }

/** The email's id as it is stored. @throws Refusal not_found, domain_not_allowed */
async function idOf(tx: Tx, { team_id, domain }: Acting, given: string): Promise<string> {
  const id = given.toLowerCase()
  const email = isUuid(id) ? await senderOfEmail(tx, team_id, id) : null
  if (!email) throw new Refusal('not_found', `there is no email ${given}`)
  if (domain !== null && parseMailbox(email.from_address)?.domain !== domain)
    throw new Refusal('domain_not_allowed', `this key may send from ${domain} only`)
  return id
}

/** Cancels an email. @throws Refusal not_found, domain_not_allowed, invalid_state */
export async function cancelEmail(by: Caller, acting: Acting, given: string): Promise<{ id: string }> {
  const { tx } = by
  const { team_id } = acting
  const id = await idOf(tx, acting, given)
  const account = await lockAccount(tx, team_id)
  const waiting = await lockDue(tx, EMAIL, { team_id, id })
  if (!waiting) throw new Refusal('not_found', `there is no email ${given}`)
  if (waiting.due_at === null) throw waitsNoMore()
  const deleted = await deleteEmailsById(tx, team_id, [id])
  await freePlaces(tx, team_id, account, { quota: EMAIL.quota.name, deleted })
  await record(by, { team_id, action: 'email.cancel', subject: id })
  return { id }
}

/** Moves an email to another time. @throws Refusal bad_request, not_found, domain_not_allowed, invalid_state */
export async function rescheduleEmail(by: Caller, acting: Acting, given: string, scheduled_at: string) {
  const now = await serviceTime(by.tx)
  assertMoment(scheduled_at, now)
  const { team_id } = acting
  const id = await idOf(by.tx, acting, given)
  const moved = await move({ tx: by.tx, now }, EMAIL, { team_id, id }, scheduled_at)
  await record(by, { team_id, action: 'email.reschedule', subject: id, detail: moved.scheduled_at })
  return moved
}
