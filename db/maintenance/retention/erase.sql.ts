/** Statements that erase an address from a team's emails, their events and raw reports. */
import { sql } from 'slonik'
import { array, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row, rowsOf } from '../../postgres/rows.ts'
import {
  foundColumns,
  foundRow,
  type IdRange,
  isAbout,
  isAboutDeleted,
  isEventNaming,
  isReportNaming,
  matchesSkip,
} from './person.sql.ts'

/**
 * Locks the states of these emails in ID order, and returns those that exist. Reads them after locking, because
 * another erasure may have changed them.
 */
export async function lockEmailsOfPerson(tx: Tx, teamId: string, ids: readonly string[]) {
  const these = sql.array(ids, 'uuid')
  await tx.query(sql.type(object())`
    select from email_states where team_id = ${teamId} and id = any(${these}) order by id for update`)
  return tx.any(sql.type(foundRow)`
    select ${foundColumns} from emails
    where team_id = ${teamId} and id = any(${these}) order by id`)
}

/**
 * An email after an erasure. `to`: its recipients. `empty`: its content is purged. `redact_all`: all of its events
 * are redacted, not only the ones with the name.
 */
export type ErasedEmail = { id: string; to: readonly string[]; empty: boolean; redact_all: boolean }

/** Rewrites emails without the erased recipient, and their events without the address that `pattern` matches. */
export async function rewriteEmails(tx: Tx, teamId: string, emails: readonly ErasedEmail[], pattern: string) {
  await tx.query(sql.type(object())`
    with n as materialized (
      select id, "to" as recipients, empty as emptied from ${rowsOf('n', { id: 'uuid', to: 'json', empty: 'bool' }, emails)}
    ), state as (
      update email_states s set
        pending_recipients = nullif(array(
          select p from unnest(s.pending_recipients) p
          where recipient_identities(array[p]) && recipient_identities(array(select json_array_elements_text(n.recipients)))), '{}'),
        contact_id = null,
        rewrites = s.rewrites + 1
      from n where s.team_id = ${teamId} and s.id = n.id
    )
    update accepted_emails e set
      to_emails = array(select json_array_elements_text(n.recipients)),
      contact_id = null,
      person = null,
      rewrites = e.rewrites + 1,
      subject = case when n.emptied then '' else e.subject end,
      html = case when n.emptied and e.html is not null then '' else e.html end,
      body_text = case when n.emptied and e.body_text is not null then '' else e.body_text end,
      variables = case when n.emptied and e.variables is not null then '{}'::json else e.variables end,
      headers = case when n.emptied then null else e.headers end,
      attachments = case when n.emptied then null else e.attachments end
    from n where e.team_id = ${teamId} and e.id = n.id`)
  await tx.query(sql.type(object())`
    update email_events v set
      recipient = null, detail = '', contact_id = null, effect = null
    from ${rowsOf('n', { id: 'uuid', redact_all: 'bool' }, emails)}
    where v.team_id = ${teamId} and v.email_id = n.id and (
      n.redact_all or ${isEventNaming(pattern)})`)
}

/** Removes the address that `pattern` matches from the key, tags and reply address of these emails. */
export const rewriteNames = (tx: Tx, teamId: string, ids: readonly string[], pattern: string) =>
  tx.query(sql.type(object())`
    update accepted_emails e set
      idempotency_key = case when lower(e.idempotency_key) !~ ${pattern} then e.idempotency_key end,
      reply_to = case when lower(e.reply_to) ~ ${pattern} then '' else e.reply_to end,
      tags = coalesce((
        select json_agg(tag order by place) from json_array_elements_text(e.tags) with ordinality t (tag, place)
        where lower(tag) !~ ${pattern}), '[]')
    where e.team_id = ${teamId} and e.id = any(${sql.array(ids, 'uuid')})
      and lower(concat_ws(' ', e.idempotency_key, e.reply_to, e.tags)) ~ ${pattern}`)

/** A separate statement, so that it sees attempts stored while the messages were deleted. */
const deleteTriesOf = (tx: Tx, teamId: string, messages: readonly string[]) =>
  tx.query(sql.type(object())`
    delete from webhook_events where team_id = ${teamId} and message_id = any(${sql.array(messages, 'uuid')})`)

/** Deletes the webhook messages about these emails or contacts, with their attempts. */
export async function deleteWebhooksAbout(
  tx: Tx,
  teamId: string,
  subjects: readonly string[],
): Promise<void> {
  const gone = await tx.anyFirst(sql.type(idRow)`
    delete from webhook_messages where team_id = ${teamId} and id in (
      select id from webhook_messages where ${isAbout(teamId, subjects)} order by id for update)
    returning id`)
  if (gone.length > 0) await deleteTriesOf(tx, teamId, gone)
}

const stretchRow = row({ last: string().nullable(), checked: number(), gone: array(string()) })

/** Deletes the webhook messages in a range that are about deleted subjects and contain the address. */
export async function deleteWebhooksNaming(
  tx: Tx,
  teamId: string,
  pattern: string,
  { after, limit }: IdRange,
): Promise<{ last: string | null; checked: number }> {
  const { gone, ...looked } = await tx.one(sql.type(stretchRow)`
    with stretch as materialized (
      select team_id, id, type, subject_id, body from webhook_messages
      where team_id = ${teamId} and id > ${after} order by id limit ${limit}
    ), gone as (
      delete from webhook_messages where team_id = ${teamId} and id in (
        select id from webhook_messages
        where team_id = ${teamId} and id in (select id from stretch w where ${isAboutDeleted(pattern)})
        order by id for update)
      returning id
    )
    select (select max(id::text) from stretch) as last, (select count(*) from stretch) as checked,
      array(select id from gone) as gone`)
  if (gone.length > 0) await deleteTriesOf(tx, teamId, gone)
  return looked
}

/** Clears the address from skips of broadcasts. The counts stay. */
export const clearSkips = (tx: Tx, teamId: string, spellings: readonly string[]) =>
  tx.query(sql.type(object())`
    update broadcast_skips set email = '', detail = '', person = null
    where ${matchesSkip(teamId, spellings)}`)

const erasedRow = row({ last: string().nullable(), checked: number(), deleted: number() })

/** Deletes the settled reports in a range that are only about this team and name the address. */
export const deleteReportsNaming = (tx: Tx, teamId: string, pattern: string, { after, limit }: IdRange) =>
  tx.one(sql.type(erasedRow)`
    with stretch as (
      select id, state, team_ids, body from reports where id > ${after} order by id limit ${limit}
    ), gone as (
      delete from reports where id in (
        select id from stretch
        where ${isReportNaming(teamId, pattern)})
      returning 1
    )
    select (select max(id::text) from stretch) as last, (select count(*) from stretch) as checked,
      (select count(*) from gone) as deleted`)
