/** Queries on contacts. Topics are in topics.sql.ts. */
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
  /** The suppression from a delivery report. An unsubscribe keeps it (DECISIONS: Unsubscribe). */
  suppression: string().oneOf(['bounced', 'complained']).nullable(),
  properties: mixed<Record<string, string>>(),
  topic_ids: array(string()),
  created_at: string(),
  updated_at: string(),
})
export type ContactRow = InferType<typeof contactRow>

export const contactColumns = sql.fragment`
  id, email, status, suppression, properties, topic_ids, created_at, updated_at`

/** The new `updated_at`. It always advances, even for quick successive changes or a clock that lags. */
export const touchedAt = (now: Date) =>
  sql.fragment`greatest(${sql.timestamp(now)}, updated_at + interval '1 millisecond')`

type NewContact = Omit<ContactRow, 'created_at' | 'updated_at'> & {
  identity: string
  /** Topics left by the recipient before the contact was created again. */
  left_topic_ids: readonly string[]
}

/**
 * `now` is the time of the locked account, so that all earlier contacts are committed (DECISIONS: Broadcasts).
 * `charge` is the statement that charges for the contacts (limits.ts, buildCharge).
 */
type Storing = { now: Date; charge: FragmentSqlToken }

/** Inserts a contact and charges for it. Check that the identity is free while you have the account's lock. */
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

export async function statusesOf(tx: Tx, teamId: string, identities: readonly string[]) {
  const rows = await tx.any(sql.type(statusRow)`
    select identity, status from contacts
    where team_id = ${teamId} and identity = any(${sql.array(identities, 'text')})`)
  return new Map(rows.map(({ identity, status }) => [identity, status]))
}

const propertiesRow = row({ identity: string(), properties: mixed<Record<string, string>>() })

/** Returns the properties of contacts by identity. @param hold true to lock them, ordered by ID. */
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

/** Like `contactByIdentity`, but locks the contact until the transaction ends. */
export const lockContact = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOne(sql.prepared('lock_contact', contactRow)`
    select ${contactColumns} from contacts
    where team_id = ${teamId} and identity = ${identity} for no key update`)

const idsRow = row({ ids: mixed<Record<string, string>>() })

/**
 * Locks the contacts of these identities, ordered by ID, and replaces properties whose value isn't null. Each is
 * looked up by key: for a team that has grown since the last ANALYZE, the planner would compare each contact with
 * each item.
 * @returns the IDs of the existing contacts, by identity.
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

/** Filters of a list page. `email` is a case-insensitive substring of the address, as given or in ASCII. */
export type ContactFilter = { email?: string | undefined; status?: ContactStatus | undefined }

// Few addresses have two forms. They have their own index.
const inAsciiForm = (teamId: string, part: string) => sql.fragment`
  team_id = ${teamId} and has_two_forms and identity ilike ${likePattern(part)}`

/** True if the ASCII form of some address contains this part. Otherwise a search can ignore these forms. */
export async function hasAsciiForm(tx: Tx, teamId: string, part: string | undefined): Promise<boolean> {
  if (!part) return false
  return tx.exists(sql.type(object())`select 1 from contacts where ${inAsciiForm(teamId, part)}`)
}

/** Matches addresses that contain this part. With `ascii`, in either form. */
export const matchesPart = (teamId: string, part: string, ascii: boolean) =>
  ascii
    ? sql.fragment`(email ilike ${likePattern(part)} or id in (
        select id from contacts where ${inAsciiForm(teamId, part)}))`
    : sql.fragment`email ilike ${likePattern(part)}`

/** Like `matchesPart`, for rows that are read anyway. The part can be too short for an index. */
export const rowMatchesPart = (part: string) =>
  sql.fragment`(email ilike ${likePattern(part)} or identity ilike ${likePattern(part)})`

type Page = { offset: number; limit: number }

/** Builds the query of a page: IDs from an index only, then the rows of the page. Exported for EXPLAIN. */
export function contactPage(
  teamId: string,
  { email, status, ascii = false }: ContactFilter & { ascii?: boolean },
  { offset, limit }: Page,
) {
  const fits = allOf(
    sql.fragment`team_id = ${teamId}`,
    status !== undefined && sql.fragment`status = ${status}`,
    email !== undefined && email !== '' && matchesPart(teamId, email, ascii),
  )
  return sql.type(contactRow)`
    select ${contactColumns} from contacts
    join (
      select team_id as page_team, id as page_id from contacts where ${fits}
      order by created_at desc, id desc limit ${limit} offset ${offset}
    ) page on team_id = page_team and id = page_id
    order by created_at desc, id desc`
}

export async function contactsOfTeam(tx: Tx, teamId: string, filter: ContactFilter, page: Page) {
  const ascii = await hasAsciiForm(tx, teamId, filter.email)
  return tx.any(contactPage(teamId, { ...filter, ascii }, page))
}

/** The fields that PATCH replaces. Absent fields stay. */
export type ContactChange = {
  properties?: Readonly<Record<string, string>> | undefined
  topic_ids?: readonly string[] | undefined
}

/** @returns the changed row, or null if it doesn't exist. */
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

/** Sets whether a contact is subscribed. A suppression stays. @param has_listeners true if its team has listeners. */
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

/** Unsubscribes the contacts that aren't unsubscribed yet. @returns those. */
export const unsubscribeContacts = (tx: Tx, teamId: string, ids: readonly string[], now: Date) =>
  tx.any(sql.type(unsubscribedRow)`
    update contacts set status = 'unsubscribed', updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and status <> 'unsubscribed'
    returning id, ${hasListeners(sql.fragment`contacts.team_id`)} as has_listeners`)

const emailRow = row({ email: string() })

/** Deletes a contact. @returns its address, or null if it doesn't exist. */
export const deleteContact = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOneFirst(sql.prepared('delete_contact', emailRow)`
    delete from contacts where team_id = ${teamId} and identity = ${identity} returning email`)
