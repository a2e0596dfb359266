/** The queries behind suppress.ts and lift.ts: contacts found, locked, suppressed and brought back. */
import { sql } from 'slonik'
import { boolean, type InferType, mixed, string } from 'yup'
import { hasListeners } from '../../channels/events/subscribers.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row, rowsOf } from '../../postgres/rows.ts'
import { rowHoldsPart, touchedAt } from '../contacts/contacts.sql.ts'
import type { SuppressionCause } from '../contacts/effect.ts'

export type ContactRef = { team_id: string; contact_id: string }
export type IdentityRef = { team_id: string; identity: string }
export type Suppressed = ContactRef & { cause: SuppressionCause | null }

const lockedRow = row({
  team_id: string(),
  identity: string(),
  contact_id: string(),
  suppression: string().nullable(),
  suppressed_softly: boolean(),
})

/** The contacts of these identities, locked by id as everywhere, so that transactions over them cannot deadlock. */
export const lockContacts = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.any(sql.prepared('lock_contacts', lockedRow)`
    select team_id, identity, id as contact_id, suppression, suppressed_softly from contacts
    where (team_id, identity) in (select * from ${rowsOf('ref', { team_id: 'uuid', identity: 'text' }, refs)})
    order by team_id, id for no key update`)

const SUPPRESSED = { team_id: 'uuid', contact_id: 'uuid', cause: 'json' }

/** What a contact goes back to one day: as it stands, unless it is suppressed already. */
const statusBefore = sql.fragment`
  case when c.status in ('subscribed', 'unsubscribed') then c.status else c.status_before end`

const changedRow = row({ team_id: string(), contact_id: string(), has_listeners: boolean() })

const changedColumns = sql.fragment`
  c.team_id, c.id as contact_id, ${hasListeners(sql.fragment`c.team_id`)} as has_listeners`

/** A permanent bounce: any state but complained becomes bounced. Its first cause stays. @returns what it changed. */
export const bounceContacts = (tx: Tx, refs: readonly Suppressed[], now: Date) =>
  tx.any(sql.prepared('bounce_contacts', changedRow)`
    update contacts c set
      status = 'bounced', suppression = coalesce(c.suppression, 'bounced'), suppressed_softly = false,
      suppression_cause = case
        when c.suppression is null or c.suppressed_softly then r.cause else c.suppression_cause end,
      status_before = ${statusBefore}, updated_at = ${touchedAt(now)}
    from ${rowsOf('r', SUPPRESSED, refs)}
    where c.team_id = r.team_id and c.id = r.contact_id and c.status <> 'complained'
      and (c.status <> 'bounced' or c.suppression is null or c.suppressed_softly)
    returning ${changedColumns}`)

/** A complaint: any state becomes complained. @returns what it changed. */
export const complainContacts = (tx: Tx, refs: readonly Suppressed[], now: Date) =>
  tx.any(sql.prepared('complain_contacts', changedRow)`
    update contacts c set
      status = 'complained', suppression = 'complained', suppressed_softly = false,
      suppression_cause = case
        when c.suppression is distinct from 'complained' then r.cause else c.suppression_cause end,
      status_before = ${statusBefore}, updated_at = ${touchedAt(now)}
    from ${rowsOf('r', SUPPRESSED, refs)}
    where c.team_id = r.team_id and c.id = r.contact_id
      and (c.status <> 'complained' or c.suppression is distinct from 'complained')
    returning ${changedColumns}`)

const judgedRow = changedRow.concat(row({ over: boolean() }))

/** How soft bounces are judged: `most` in a row suppress; mail sent before `undisputed` and not bounced arrived. */
export type SoftRule = { most: number; undisputed: Date; now: Date }

/**
 * Judges contacts by their soft bounces: one with `most` in a row since its last delivery is bounced; one that was
 * bounced for such a row, which a delivery has ended since, goes back. Others stay as they are. What counts as a
 * delivery: a report of one, or an email that is still `sent` after a day (DECISIONS: Delivery reports). A contact's
 * emails are found by their recipients alone: given the team too, the planner goes through all that a large team sent.
 * @returns those that changed; `over`: suppressed now, else brought back.
 */
export const judgeSoftBounces = (tx: Tx, refs: readonly Suppressed[], { most, undisputed, now }: SoftRule) =>
  tx.any(sql.prepared('judge_soft_bounces', judgedRow)`
    with delivered as (
      select r.team_id, r.contact_id as id, r.cause, greatest(
        (select max(d.occurred_at) from email_events d
          where d.team_id = r.team_id and d.contact_id = r.contact_id and d.effect = 'delivered'),
        (select max(v.occurred_at) from (
            select team_id, id, contact_id from accepted_emails
            where recipient_identities(to_emails) && array[lower(c.email), c.identity] offset 0) e
          cross join lateral (
            select status from email_states where team_id = e.team_id and id = e.id offset 0) s
          join email_events v on v.team_id = e.team_id and v.email_id = e.id and v.kind = 'sent'
            and (e.contact_id = r.contact_id or lower(v.recipient) = c.identity)
          where e.team_id = r.team_id and s.status = 'sent' and v.occurred_at < ${sql.timestamp(undisputed)})) as at
      from ${rowsOf('r', SUPPRESSED, refs)}
        join contacts c on c.team_id = r.team_id and c.id = r.contact_id
    ), judged as materialized (
      select d.team_id, d.id, d.cause, (
        select count(*) from email_events s
        where s.team_id = d.team_id and s.contact_id = d.id and s.effect = 'soft'
          and s.occurred_at >= coalesce(d.at, '-infinity') and s.occurred_at > coalesce(c.lifted_at, '-infinity')
      ) >= ${most} as over
      from delivered d join contacts c on c.team_id = d.team_id and c.id = d.id
    )
    update contacts c set
      status = case
        when j.over then 'bounced'
        when c.status = 'bounced' then coalesce(c.status_before, 'subscribed')
        else c.status end,
      suppression = case when j.over then 'bounced' end,
      suppression_cause = case when j.over then j.cause end,
      suppressed_softly = j.over,
      status_before = case when j.over then c.status end,
      updated_at = ${touchedAt(now)}
    from judged j
    where c.team_id = j.team_id and c.id = j.id
      and (j.over and c.suppression is null and c.status in ('subscribed', 'unsubscribed')
        or not j.over and c.suppressed_softly)
    returning ${changedColumns}, j.over`)

const contactRefRow = row({ team_id: string(), contact_id: string() })

/** Contacts that soft bounces alone suppress, after `after` in the order of their ids, locked. */
export async function lockSoftlySuppressed(tx: Tx, after: ContactRef | undefined, limit: number) {
  const further = allOf(
    after !== undefined && sql.fragment`(team_id, id) > (${after.team_id}::uuid, ${after.contact_id}::uuid)`,
  )
  return tx.any(sql.type(contactRefRow)`
    select team_id, id as contact_id from contacts where suppressed_softly and ${further}
    order by team_id, id limit ${limit} for no key update`)
}

const liftedRow = row({ has_listeners: boolean() })

/** Ends whatever suppresses a contact; soft bounces count from zero again. @returns whether anybody listens to it. */
export const liftContact = (tx: Tx, teamId: string, id: string, now: Date) =>
  tx.oneFirst(sql.type(liftedRow)`
    update contacts c set
      status = case when status in ('bounced', 'complained') then coalesce(status_before, 'subscribed') else status end,
      suppression = null, suppression_cause = null, suppressed_softly = false, status_before = null,
      lifted_at = ${sql.timestamp(now)}, updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and id = ${id}
    returning ${hasListeners(sql.fragment`c.team_id`)} as has_listeners`)

const suppressionRow = row({
  suppression_cause: mixed<SuppressionCause>().nullable(),
  lifted_at: string().nullable(),
})

/** What suppresses a contact, and when a person last ended that; null without the contact. */
export const suppressionOf = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(suppressionRow)`
    select suppression_cause, lifted_at from contacts where team_id = ${teamId} and id = ${id}`)

const suppressedRow = row({
  id: string(),
  email: string(),
  status: string(),
  suppression_cause: mixed<SuppressionCause>().nullable(),
  created_at: string(),
})
export type SuppressedRow = InferType<typeof suppressedRow>

/** @param email a part of the address, in either of its forms. @param before the contact that the page follows. */
type SuppressedSearch = {
  email?: string | undefined
  status?: string | undefined
  before?: string | undefined
  limit: number
}

/** A team's contacts that bounced or complained, the newest contacts first. */
export async function suppressedContacts(
  tx: Tx,
  teamId: string,
  { email, status, before, limit }: SuppressedSearch,
) {
  const after =
    before !== undefined &&
    sql.fragment`(created_at, id) < (select created_at, id from contacts where team_id = ${teamId} and id = ${before})`
  const fits = allOf(after, email !== undefined && rowHoldsPart(email))
  const among = ['bounced', 'complained'].filter((word) => status === undefined || word === status)
  const parts = among.map(
    (word) => sql.fragment`(
      select id, email, status, suppression_cause, created_at from contacts
      where team_id = ${teamId} and status = ${word} and ${fits}
      order by created_at desc, id desc limit ${limit})`,
  )
  return tx.any(sql.type(suppressedRow)`
    select * from (${sql.join(parts, sql.fragment` union all `)}) suppressed
    order by created_at desc, id desc limit ${limit}`)
}

/** How many of a team's contacts are suppressed, counted up to `most`. */
export const suppressedCount = (tx: Tx, teamId: string, most: number) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from (
      select from contacts where team_id = ${teamId} and status in ('bounced', 'complained') limit ${most}) counted`)
