/** Rows of contacts, and the queries over them. Topics are in topics.sql.ts. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, type InferType, mixed, object, string } from 'yup'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { likePattern } from '../../validation/strings.ts'

export const CONTACT_STATUSES = ['subscribed', 'unsubscribed', 'bounced', 'complained'] as const
export type ContactStatus = (typeof CONTACT_STATUSES)[number]

export const contactRow = row({
  id: string(),
  email: string(),
  status: string().oneOf(CONTACT_STATUSES),
  /** What a delivery report once found; outlives an unsubscribe (DECISIONS: Unsubscribe). */
  suppression: string().oneOf(['bounced', 'complained']).nullable(),
  properties: mixed<Record<string, string>>(),
  topic_ids: array(string()),
  created_at: string(),
  updated_at: string(),
})
export type ContactRow = InferType<typeof contactRow>

export const contactColumns = sql.fragment`
  id, email, status, suppression, properties, topic_ids, created_at, updated_at`

/** The new `updated_at`: it advances with every change, even when two come close together or a clock lags. */
export const touchedAt = (now: Date) =>
  sql.fragment`greatest(${sql.timestamp(now)}, updated_at + interval '1 millisecond')`

/** A contact to store: its email as given, and the identity that makes two spellings one. */
type NewContact = {
  id: string
  email: string
  identity: string
  properties: Readonly<Record<string, string>>
  topic_ids: readonly string[]
  status: ContactStatus
  suppression: 'bounced' | 'complained' | null
  /** Those that the person left before the contact was made again. */
  left_topic_ids: readonly string[]
}

/**
 * What new contacts belong to: what they cost (limits.ts, chargeOf), and when they were made: by the locked account's
 * clock, so that all contacts made before a moment under that lock are committed then (DECISIONS: Broadcasts).
 */
type Storing = { now: Date; charge: FragmentSqlToken }

/** Stores a contact whose identity is not taken and charges for it, in one statement: ask under the account's lock. */
export const insertContact = (tx: Tx, teamId: string, contact: NewContact, { now, charge }: Storing) =>
  tx.one(sql.prepared('insert_contact', contactRow)`
    with charged as (${charge})
    insert into contacts (
      team_id, id, email, identity, status, suppression, properties, topic_ids, left_topic_ids, created_at, updated_at)
    values (${teamId}, ${contact.id}, ${contact.email}, ${contact.identity}, ${contact.status}, ${contact.suppression},
      ${JSON.stringify(contact.properties)}, ${sql.array(contact.topic_ids, 'uuid')},
      ${sql.array(contact.left_topic_ids, 'uuid')}, ${sql.timestamp(now)}, ${sql.timestamp(now)})
    returning ${contactColumns}`)

export const contactByIdentity = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOne(sql.prepared('contact_by_identity', contactRow)`
    select ${contactColumns} from contacts where team_id = ${teamId} and identity = ${identity}`)

const statusRow = row({ identity: string(), status: string().oneOf(CONTACT_STATUSES) })

export async function statusesOf(
  tx: Tx,
  teamId: string,
  identities: readonly string[],
): Promise<Map<string, ContactStatus>> {
  const rows = await tx.any(sql.type(statusRow)`
    select identity, status from contacts
    where team_id = ${teamId} and identity = any(${sql.array(identities, 'text')})`)
  return new Map(rows.map(({ identity, status }) => [identity, status]))
}

const propertiesRow = row({ identity: string(), properties: mixed<Record<string, string>>() })

/**
 * The properties of those of these identities that are contacts. @param hold whether nobody may change them until the
 * transaction ends; they are locked by id, as every lock of many contacts does.
 */
export async function propertiesOf(tx: Tx, teamId: string, identities: readonly string[], hold: boolean) {
  const rows = await tx.any(sql.type(propertiesRow)`
    select identity, properties from contacts
    where team_id = ${teamId} and identity = any(${sql.array(identities, 'text')})
    order by id ${hold ? sql.fragment`for no key update` : sql.fragment``}`)
  return new Map(rows.map(({ identity, properties }) => [identity, properties]))
}

export const contactExists = async (tx: Tx, teamId: string, identity: string): Promise<boolean> =>
  tx.exists(sql.prepared('contact_exists', object())`
    select 1 from contacts where team_id = ${teamId} and identity = ${identity}`)

/** As `contactByIdentity`, locked until the transaction ends. */
export const lockContact = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOne(sql.prepared('lock_contact', contactRow)`
    select ${contactColumns} from contacts
    where team_id = ${teamId} and identity = ${identity} for no key update`)

const idsRow = row({ ids: mixed<Record<string, string>>() })

/**
 * Locks the contacts of these identities by id, as every lock of many contacts does, and writes the maps that come with
 * them; null leaves a contact as it is. One statement, one row as its answer: a thousand rows, each validated by
 * itself, took half of the time. Each is looked up by its keys, whatever the planner thinks of the team: one that has
 * grown since the last ANALYZE counts as nearly empty, and each of its contacts was compared with each item.
 * @returns the ids of those that exist, by identity.
 */
export async function writeContacts(
  tx: Tx,
  teamId: string,
  items: ReadonlyMap<string, Readonly<Record<string, string>> | null>,
  now: Date,
): Promise<Map<string, string>> {
  const given = [...items].map(([identity, properties]) => ({ identity, properties }))
  const ids = await tx.oneFirst(sql.prepared('write_contacts', idsRow)`
    with item as materialized (
      select ${teamId}::uuid as team_id, identity, properties
      from ${rowsOf('given', { identity: 'text', properties: 'jsonb' }, given)}
    ), held as materialized (
      select c.team_id, c.id, c.identity, item.properties
      from item join contacts c on c.team_id = item.team_id and c.identity = item.identity
      order by c.id for no key update of c
    ), written as (
      update contacts c set properties = held.properties, updated_at = ${touchedAt(now)}
      from held where c.team_id = held.team_id and c.id = held.id and held.properties is not null
    )
    select coalesce(json_object_agg(identity, id), '{}') as ids from held`)
  return new Map(Object.entries(ids))
}

const CONTACT = {
  ...{ id: 'uuid', email: 'text', identity: 'text', properties: 'jsonb' },
  ...{ status: 'text', suppression: 'text', left_topic_ids: 'text' },
}

/** As `insertContact`, for many in one statement. */
export async function insertContacts(
  tx: Tx,
  teamId: string,
  contacts: readonly Omit<NewContact, 'topic_ids'>[],
  { now, charge }: Storing,
): Promise<void> {
  const items = contacts.map((one) => ({ ...one, left_topic_ids: `{${one.left_topic_ids.join()}}` }))
  await tx.query(sql.prepared('insert_contacts', object())`
    with charged as (${charge})
    insert into contacts (
      team_id, id, email, identity, status, suppression, properties, topic_ids, left_topic_ids, created_at, updated_at)
    select ${teamId}, id, email, identity, status, suppression, properties, '{}', left_topic_ids::uuid[],
      ${sql.timestamp(now)}, ${sql.timestamp(now)}
    from ${rowsOf('item', CONTACT, items)}`)
}

/**
 * What a page of the list shows: `email` is a substring, taken literally and without regard to case, of the address as
 * it was given or in ASCII form.
 */
export type ContactFilter = { email?: string | undefined; status?: ContactStatus | undefined }

// Few addresses have two forms, and an index of their own.
const inAsciiForm = (teamId: string, part: string) => sql.fragment`
  team_id = ${teamId} and has_two_forms and identity ilike ${likePattern(part)}`

/** Whether the ASCII form of some address holds this part: only then need a search look at these forms at all. */
export async function hasAsciiForm(tx: Tx, teamId: string, part: string | undefined): Promise<boolean> {
  if (!part) return false
  return tx.exists(sql.type(object())`select 1 from contacts where ${inAsciiForm(teamId, part)}`)
}

/** Whether an address holds this part; with `ascii`, in either of its forms. */
export const holdsPart = (teamId: string, part: string, ascii: boolean) =>
  ascii
    ? sql.fragment`(email ilike ${likePattern(part)} or id in (
        select id from contacts where ${inAsciiForm(teamId, part)}))`
    : sql.fragment`email ilike ${likePattern(part)}`

/** The same of a row that is read anyway, whatever the indexes: a part may be too short for them. */
export const rowHoldsPart = (part: string) =>
  sql.fragment`(email ilike ${likePattern(part)} or identity ilike ${likePattern(part)})`

type Page = { offset: number; limit: number }

/** The query of a page: ids from an index alone, then only the page's own rows. Exported for EXPLAIN. */
export function contactPage(
  teamId: string,
  { email, status, ascii = false }: ContactFilter & { ascii?: boolean },
  { offset, limit }: Page,
) {
  const fits = allOf(
    sql.fragment`team_id = ${teamId}`,
    status !== undefined && sql.fragment`status = ${status}`,
    email !== undefined && email !== '' && holdsPart(teamId, email, ascii),
  )
  return sql.type(contactRow)`
    select ${contactColumns} from contacts
    join (
      select team_id as page_team, id as page_id from contacts where ${fits}
      order by created_at desc, id desc limit ${limit} offset ${offset}
    ) page on team_id = page_team and id = page_id
    order by created_at desc, id desc`
}

/** A team's contacts, newest first. */
export async function contactsOfTeam(tx: Tx, teamId: string, filter: ContactFilter, page: Page) {
  const ascii = await hasAsciiForm(tx, teamId, filter.email)
  return tx.any(contactPage(teamId, { ...filter, ascii }, page))
}

/** What PATCH replaces; an absent field stays as it is. */
export type ContactChange = {
  properties?: Readonly<Record<string, string>> | undefined
  topic_ids?: readonly string[] | undefined
}

/** Changes a contact. @returns the changed row, or null without one. */
export async function updateContact(
  tx: Tx,
  teamId: string,
  { identity, properties, topic_ids }: ContactChange & { identity: string },
  now: Date,
) {
  const map = properties === undefined ? null : JSON.stringify(properties)
  return tx.maybeOne(sql.prepared('update_contact', contactRow)`
    update contacts set
      properties = coalesce(${map}::jsonb, properties),
      topic_ids = case when ${topic_ids === undefined} then topic_ids else ${sql.array(topic_ids ?? [], 'uuid')} end,
      updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and identity = ${identity}
    returning ${contactColumns}`)
}

const changedRow = contactRow.concat(row({ has_listeners: boolean() }))

/** Changes whether a contact hears from us; what a report found stays. `has_listeners`: is its team listened to. */
export const updateContactStatus = (
  tx: Tx,
  teamId: string,
  { id, status }: { id: string; status: 'subscribed' | 'unsubscribed' },
  now: Date,
) =>
  tx.one(sql.prepared('update_contact_status', changedRow)`
    update contacts set status = ${status}, updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and id = ${id}
    returning ${contactColumns}, ${hasListeners(sql.fragment`contacts.team_id`)} as has_listeners`)

const unsubscribedRow = row({ id: string(), has_listeners: boolean() })

/** Unsubscribes those of these contacts that aren't. @returns them. */
export const unsubscribeContacts = (tx: Tx, teamId: string, ids: readonly string[], now: Date) =>
  tx.any(sql.type(unsubscribedRow)`
    update contacts set status = 'unsubscribed', updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and status <> 'unsubscribed'
    returning id, ${hasListeners(sql.fragment`contacts.team_id`)} as has_listeners`)

const emailRow = row({ email: string() })

/** Deletes a contact. @returns its address; null when there was none. */
export const deleteContact = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOneFirst(sql.prepared('delete_contact', emailRow)`
    delete from contacts where team_id = ${teamId} and identity = ${identity} returning email`)
