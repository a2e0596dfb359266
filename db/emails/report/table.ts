/** The queries behind db/emails/report.ts: emails found, locked and lifted for what happened to them. */
import { sql } from 'slonik'
import { array, object, string } from 'yup'
import type { Tx } from '../../pool.ts'
import { EMAIL_LADDER, type EmailStatus } from '../status.ts'
import { type EmailRef, refTuples } from '../table.ts'

const recipientsRow = object({
  team_id: string().defined(),
  email_id: string().defined(),
  to_emails: array(string().defined()).defined(),
})

/** The recipients of rows, locked in one order, so that transactions over the same rows cannot deadlock. */
export async function lockEmails(tx: Tx, refs: readonly EmailRef[]) {
  return await tx.any(sql.prepared('lock_emails', recipientsRow)`
    select team_id, id as email_id, to_emails from emails
    where (team_id, id) in (select * from ${refTuples(refs)} as ref (team_id, id))
    order by team_id, id for no key update`)
}

const providerIdRow = object({
  provider_message_id: string().defined(),
  team_id: string().defined(),
  email_id: string().defined(),
})

/** The emails that the provider knows by these ids. */
export async function emailsByProviderIds(tx: Tx, ids: readonly string[]): Promise<Map<string, EmailRef>> {
  const rows = await tx.any(sql.prepared('emails_by_provider_ids', providerIdRow)`
    select provider_message_id, team_id, id as email_id from emails
    where provider_message_id = any(${sql.array(ids, 'text')}) order by id desc`)
  return new Map(rows.map(({ provider_message_id, ...ref }) => [provider_message_id, ref]))
}

/**
 * Stores the provider's ids of messages that it has taken, in one statement; one that is stored already stays. Each
 * attempt is for everyone who is still pending, so a message that was taken whole leaves nobody to try again.
 */
export async function recordTaken(
  tx: Tx,
  taken: readonly (EmailRef & { provider_message_id: string })[],
): Promise<void> {
  await tx.query(sql.prepared('record_taken_emails', object())`
    update emails e set
      provider_message_id = coalesce(e.provider_message_id, t.provider_message_id), pending_recipients = null
    from ${sql.unnest(
      taken.map((one) => [one.team_id, one.email_id, one.provider_message_id]),
      ['uuid', 'uuid', 'text'],
    )}
      as t (team_id, id, provider_message_id)
    where e.team_id = t.team_id and e.id = t.id
      and (e.provider_message_id is null or e.pending_recipients is not null)`)
}

/** Lifts rows to a status each, never down the ladder, in one statement. */
export async function raiseStatuses(
  tx: Tx,
  rises: readonly (EmailRef & { status: EmailStatus })[],
): Promise<void> {
  const ladder = sql.array(EMAIL_LADDER, 'text')
  await tx.query(sql.prepared('raise_email_statuses', object())`
    update emails e set status = r.status
    from ${sql.unnest(
      rises.map((rise) => [rise.team_id, rise.email_id, rise.status]),
      ['uuid', 'uuid', 'text'],
    )}
      as r (team_id, id, status)
    where e.team_id = r.team_id and e.id = r.id
      and array_position(${ladder}, r.status) > array_position(${ladder}, e.status)`)
}
