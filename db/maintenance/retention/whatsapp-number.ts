/**
 * Exports and erases a team's stored data about a WhatsApp number. A keyed hash of an opt-out stays. Waiting messages
 * are deleted and refunded to the quota.
 */
import { type By, record } from '../../accounts/audit/record.ts'
import { lockAccount, refundQuota } from '../../accounts/teams/limits.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { WHATSAPP } from '../../channels/whatsapp.sql.ts'
import { RequestError } from '../../errors.ts'
import { deleteMessage } from '../../messages/whatsapp/delete.sql.ts'
import { listForms } from '../../messages/whatsapp/number-forms.ts'
import { changeOptOuts, erasedNumber } from '../../messages/whatsapp/opt-outs.ts'
import type { Database } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { deleteWebhooksAbout } from './erase.sql.ts'
import {
  deleteNumberPauses,
  deleteOptOuts,
  deleteReportsOfNumber,
  lockMessagesToNumber,
  messagesToNumber,
  optOutsOfNumber,
  rewriteMessages,
} from './whatsapp-number.sql.ts'

/** Replaces the number in a message. */
const PLACEHOLDER = 'erased'

const unknown = (number: string) =>
  new RequestError('contact_not_found', `Nothing is stored about ${number}: no messages and no opt-out.`)

type Exporting = Omit<By, 'tx'> & { database: Database; secrets: Pick<Secrets, 'sign'> }

/** Exports everything stored about a number. @throws RequestError not_found, contact_not_found */
export async function exportNumber({ database, secrets, ...by }: Exporting, teamId: string, number: string) {
  const numbers = listForms(number)
  return database.transaction(async (tx) => {
    await requireTeam(tx, teamId)
    const messages = await messagesToNumber(tx, teamId, numbers)
    const optOuts = await optOutsOfNumber(tx, teamId, numbers)
    if (messages.length === 0 && optOuts.length === 0) throw unknown(number)
    const subject = erasedNumber(secrets, teamId, number)
    await record({ ...by, tx }, { team_id: teamId, action: 'contact.export', subject })
    const exported_at = by.now.toISOString()
    return { number, exported_at, whatsapp_messages: messages, whatsapp_opt_outs: optOuts }
  })
}

/** @returns counts of the erased data. @throws RequestError not_found, contact_not_found */
export async function eraseNumber(
  { secrets, ...by }: By & { secrets: Pick<Secrets, 'sign'> },
  teamId: string,
  number: string,
) {
  const { tx, now } = by
  const numbers = listForms(number)
  await requireTeam(tx, teamId)
  const account = await lockAccount(tx, teamId)
  const messages = await lockMessagesToNumber(tx, teamId, numbers)
  const optOuts = await deleteOptOuts(tx, teamId, numbers)
  if (messages.length === 0 && optOuts.length === 0) throw unknown(number)
  const waiting = messages.filter(({ waits }) => waits)
  for (const { id } of waiting) {
    const deleted = await deleteMessage(tx, teamId, id)
    await refundQuota(tx, teamId, account, { quota: WHATSAPP.quota.name, deleted })
  }
  const kept = messages.filter(({ waits }) => !waits).map(({ id }) => id)
  if (kept.length > 0) await rewriteMessages(tx, teamId, kept, PLACEHOLDER)
  await deleteWebhooksAbout(
    tx,
    teamId,
    messages.map(({ id }) => id),
  )
  await deleteNumberPauses(tx, numbers)
  const { deleted: reports } = await deleteReportsOfNumber(
    tx,
    teamId,
    numbers.map((each) => each.slice(1)),
  )
  const hash = erasedNumber(secrets, teamId, number)
  if (optOuts.some(({ is_out }) => is_out))
    await changeOptOuts(tx, [{ team_id: teamId, recipient: hash, is_out: true, at: now, by: 'erasure' }])
  await record(by, { team_id: teamId, action: 'contact.erase', subject: hash })
  return {
    whatsapp_messages: kept.length,
    waiting_messages_deleted: waiting.length,
    whatsapp_opt_outs: optOuts.length,
    reports,
  }
}
