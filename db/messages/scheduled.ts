/**
 * Cancels and reschedules messages in the caller's transaction. A cancelled message is deleted, and its quota is
 * refunded. Its key is freed with the last message of the call. The account is locked before the message. DECISIONS:
 * Scheduled messages.
 */

import { type Caller, record } from '../accounts/audit/record.ts'
import { type Account, lockAccount, refundQuota, saveAccount } from '../accounts/teams/limits.ts'
import { rateReached, toLimitState } from '../accounts/teams/rate-limit.ts'
import type { Channel, DeliveryRef } from '../channels/channel.sql.ts'
import { EMAIL } from '../channels/email.sql.ts'
import type { ChannelName } from '../channels/list.ts'
import { WHATSAPP } from '../channels/whatsapp.sql.ts'
import { deliveryState } from '../delivery/requeue.sql.ts'
import { lockDue, moveDue } from '../delivery/schedule.sql.ts'
import { invalidField, RequestError, requestError } from '../errors.ts'
import { fill } from '../fill.ts'
import type { Tx } from '../postgres/pool.ts'
import { serviceTime } from '../postgres/time.sql.ts'
import { parseMailbox } from '../validation/address.ts'
import { momentFault } from '../validation/moments.ts'
import { isUuid } from '../validation/strings.ts'
import { deleteEmailsById } from './emails/delete.sql.ts'
import { senderOfEmail } from './emails/emails.sql.ts'
import { TEXTS } from './texts.ts'
import { deleteMessage } from './whatsapp/delete.sql.ts'

/** Names a message. `domain`: the one that the API key is limited to. Otherwise any. */
type Named = { channel: ChannelName; team_id: string; id: string; domain?: string | null }

type Messages = {
  channel: Channel
  /** Returns the sender's address, for keys limited to a domain. Null if the message doesn't exist. */
  senderOf?(tx: Tx, teamId: string, id: string): Promise<{ from_address: string } | null>
  delete(tx: Tx, teamId: string, id: string): Promise<readonly { created_at: string }[]>
}

const MESSAGES: Readonly<Record<ChannelName, Messages>> = {
  email: {
    channel: EMAIL,
    senderOf: senderOfEmail,
    delete: (tx, teamId, id) => deleteEmailsById(tx, teamId, [id]),
  },
  whatsapp: { channel: WHATSAPP, delete: deleteMessage },
}

/** An invalid ID isn't repeated, because errors are logged and a client may have put an address there. */
const noMessage = ({ channel: { noun } }: Messages, id?: string): RequestError =>
  new RequestError(
    'not_found',
    id === undefined ? fill(TEXTS.noSuchMessage, { noun }) : fill(TEXTS.noMessage, { noun, id }),
  )

/** Returns the stored message. @throws RequestError not_found, domain_not_allowed */
async function findRef(tx: Tx, messages: Messages, { team_id, id: given, domain = null }: Named) {
  const id = given.toLowerCase()
  if (!isUuid(id)) throw noMessage(messages)
  if (domain === null || !messages.senderOf) return { team_id, id }
  const sender = await messages.senderOf(tx, team_id, id)
  if (!sender) throw noMessage(messages, given)
  if (parseMailbox(sender.from_address)?.domain !== domain)
    throw requestError('domain_not_allowed', TEXTS.keySendsFrom, { domain })
  return { team_id, id }
}

async function lockWaiting(tx: Tx, messages: Messages, ref: DeliveryRef) {
  const found = await lockDue(tx, messages.channel, ref)
  if (!found) throw noMessage(messages, ref.id)
  if (found.due_at === null) throw new RequestError('invalid_state', TEXTS.notWaiting)
  return found
}

/** For the question before a cancellation. @throws RequestError not_found, invalid_state if it isn't scheduled */
export async function assertScheduled(tx: Tx, named: Named): Promise<void> {
  const messages = MESSAGES[named.channel]
  const ref = await findRef(tx, messages, named)
  const state = await deliveryState(tx, messages.channel, ref)
  if (!state) throw noMessage(messages, ref.id)
  if (state.due_at === null) throw new RequestError('invalid_state', TEXTS.notWaiting)
}

/** Cancels a message. @throws RequestError not_found, domain_not_allowed, invalid_state */
export async function cancelScheduled(by: Caller, named: Named): Promise<{ id: string }> {
  const { tx } = by
  const messages = MESSAGES[named.channel]
  const ref = await findRef(tx, messages, named)
  const { team_id, id } = ref
  const account = await lockAccount(tx, team_id)
  await lockWaiting(tx, messages, ref)
  const deleted = await messages.delete(tx, team_id, id)
  await refundQuota(tx, team_id, account, { quota: messages.channel.quota.name, deleted })
  await record(by, { team_id, action: `${named.channel}.cancel`, subject: id })
  return { id }
}

/** Uses a token of a locked account's bucket. @throws LimitReached */
async function takeToken(tx: Tx, teamId: string, account: Account): Promise<void> {
  if (account.bucket.tokens < 1) throw rateReached(account)
  account.bucket.tokens -= 1
  await saveAccount(tx, teamId, account)
}

/**
 * Moves a message to another time, and its expiry with it. Repeating the stored time changes and records nothing.
 * @param account locked, if the call uses a token of its bucket.
 * @throws RequestError bad_request for a time that is too far ahead or past, not_found, domain_not_allowed,
 * invalid_state
 */
export async function moveScheduled(by: Caller, named: Named, scheduled_at: string, account?: Account) {
  const { tx } = by
  const now = await serviceTime(tx)
  const problem = momentFault(scheduled_at, now)
  if (problem !== null) throw invalidField('scheduled_at', problem)
  const messages = MESSAGES[named.channel]
  const ref = await findRef(tx, messages, named)
  const stored = await lockWaiting(tx, messages, ref)
  const { team_id, id } = ref
  if (account) await takeToken(tx, team_id, account)
  const to = new Date(scheduled_at)
  const detail = to.toISOString()
  if (stored.scheduled_at === null || new Date(stored.scheduled_at).getTime() !== to.getTime()) {
    await moveDue(tx, messages.channel, ref, { to, now })
    await record(by, { team_id, action: `${named.channel}.reschedule`, subject: id, detail })
  }
  return { id, scheduled_at: detail }
}

/**
 * Does the same for an API call, which uses a token of the team's bucket unless it is rejected.
 * @throws RequestError as `moveScheduled`. LimitReached
 */
export async function moveScheduledAtRate(by: Caller, named: Named, scheduled_at: string) {
  const account = await lockAccount(by.tx, named.team_id)
  const moved = await moveScheduled(by, named, scheduled_at, account)
  return { moved, limit_state: toLimitState(account) }
}
