/** Rows of contacts and topics, and the queries over them. */
import { sql } from 'slonik'
import { array, type InferType, mixed, object, string } from 'yup'
import type { Tx } from '../pool.ts'

export const CONTACT_STATUSES = ['subscribed', 'unsubscribed', 'bounced', 'complained'] as const
export type ContactStatus = (typeof CONTACT_STATUSES)[number]

const contactRow = object({
  id: string().defined(),
  email: string().defined(),
  status: string().oneOf(CONTACT_STATUSES).defined(),
  /** What a delivery report once found; outlives an unsubscribe (decisions: unsubscribe). */
  suppression: string().oneOf(['bounced', 'complained']).defined().nullable(),
  properties: mixed<Record<string, string>>().defined(),
  topic_ids: array(string().defined()).defined(),
  created_at: string().defined(),
  updated_at: string().defined(),
})
export type ContactRow = InferType<typeof contactRow>

const contactColumns = sql.fragment`
  id, email, status, suppression, properties, topic_ids, created_at, updated_at`

// `updated_at` advances at each change, however close two of them lie and whichever process's clock lags.
const touchedAt = (now: Date) =>
  sql.fragment`greatest(${sql.timestamp(now)}, updated_at + interval '1 millisecond')`

/** A contact to store: its email as given, and the identity that makes two spellings one. */
export type NewContact = {
  id: string
  email: string
  identity: string
  properties: Readonly<Record<string, string>>
  topic_ids: readonly string[]
}

/** Stores a contact whose identity is not taken: ask under the account's lock. */
export async function insertContact(
  tx: Tx,
  teamId: string,
  contact: NewContact,
  now: Date,
): Promise<ContactRow> {
  return await tx.one(sql.type(contactRow)`
    insert into contacts (
      team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    values (${teamId}, ${contact.id}, ${contact.email}, ${contact.identity}, 'subscribed',
      ${JSON.stringify(contact.properties)}, ${sql.array(contact.topic_ids, 'uuid')},
      ${sql.timestamp(now)}, ${sql.timestamp(now)})
    returning ${contactColumns}`)
}

export async function contactByIdentity(
  tx: Tx,
  teamId: string,
  identity: string,
): Promise<ContactRow | null> {
  return await tx.maybeOne(sql.type(contactRow)`
    select ${contactColumns} from contacts where team_id = ${teamId} and identity = ${identity}`)
}

/** As `contactByIdentity`, locked until the transaction ends. */
export async function lockContact(tx: Tx, teamId: string, identity: string): Promise<ContactRow | null> {
  return await tx.maybeOne(sql.type(contactRow)`
    select ${contactColumns} from contacts
    where team_id = ${teamId} and identity = ${identity} for no key update`)
}

const identityRow = object({ id: string().defined(), identity: string().defined() })

/** The ids of these identities' contacts, locked in one order, whoever else locks many of them. */
export async function lockContacts(
  tx: Tx,
  teamId: string,
  identities: readonly string[],
): Promise<Map<string, string>> {
  const rows = await tx.any(sql.prepared('lock_contacts_of_team', identityRow)`
    select id, identity from contacts
    where team_id = ${teamId} and identity = any(${sql.array(identities, 'text')})
    order by identity for no key update`)
  return new Map(rows.map(({ id, identity }) => [identity, id]))
}

/** Stores contacts whose identities are not taken, in one statement: ask under the account's lock. */
export async function insertContacts(
  tx: Tx,
  teamId: string,
  contacts: readonly Omit<NewContact, 'topic_ids'>[],
  now: Date,
): Promise<void> {
  const tuples = contacts.map(({ id, email, identity, properties }) => [
    id,
    email,
    identity,
    JSON.stringify(properties),
  ])
  await tx.query(sql.prepared('insert_contacts', object())`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${teamId}, id, email, identity, 'subscribed', properties, '{}', ${sql.timestamp(now)}, ${sql.timestamp(now)}
    from ${sql.unnest(tuples, ['uuid', 'text', 'text', 'jsonb'])} as item (id, email, identity, properties)`)
}

/** Replaces the properties of contacts, in one statement; nothing else of them changes. */
export async function writeContactProperties(
  tx: Tx,
  teamId: string,
  contacts: readonly Pick<NewContact, 'id' | 'properties'>[],
  now: Date,
): Promise<void> {
  const tuples = contacts.map(({ id, properties }) => [id, JSON.stringify(properties)])
  await tx.query(sql.prepared('write_contact_properties', object())`
    update contacts c set properties = item.properties, updated_at = ${touchedAt(now)}
    from ${sql.unnest(tuples, ['uuid', 'jsonb'])} as item (id, properties)
    where c.team_id = ${teamId} and c.id = item.id`)
}

/** What a page of the list shows: `email` is a substring, taken literally and without regard to case. */
export type ContactFilter = { email?: string | undefined; status?: ContactStatus | undefined }
export type Page = { offset: number; limit: number }

const like = (substring: string): string => `%${substring.replace(/[\\%_]/g, '\\$&')}%`

/** The query of a page: ids from an index alone, then only the page's own rows. Exported for EXPLAIN. */
export function contactPage(teamId: string, { email, status }: ContactFilter, { offset, limit }: Page) {
  const conditions = [
    sql.fragment`team_id = ${teamId}`,
    ...(status === undefined ? [] : [sql.fragment`status = ${status}`]),
    ...(email === undefined || email === '' ? [] : [sql.fragment`email ilike ${like(email)}`]),
  ]
  return sql.type(contactRow)`
    select ${contactColumns} from contacts
    join (
      select id as page_id from contacts where ${sql.join(conditions, sql.fragment` and `)}
      order by created_at desc, id desc limit ${limit} offset ${offset}
    ) page on id = page_id
    where team_id = ${teamId}
    order by created_at desc, id desc`
}

/** A team's contacts, newest first. */
export async function contactsOfTeam(
  tx: Tx,
  teamId: string,
  filter: ContactFilter,
  page: Page,
): Promise<readonly ContactRow[]> {
  return await tx.any(contactPage(teamId, filter, page))
}

/** What PATCH replaces; an absent field stays as it is. */
export type ContactChange = {
  properties?: Readonly<Record<string, string>> | undefined
  topic_ids?: readonly string[] | undefined
}

/** @returns the changed row, or null without one. */
export async function updateContact(
  tx: Tx,
  teamId: string,
  identity: string,
  { properties, topic_ids }: ContactChange,
  now: Date,
): Promise<ContactRow | null> {
  const topics = topic_ids === undefined ? sql.fragment`topic_ids` : sql.array(topic_ids, 'uuid')
  const map = properties === undefined ? null : JSON.stringify(properties)
  return await tx.maybeOne(sql.type(contactRow)`
    update contacts set
      properties = coalesce(${map}::jsonb, properties), topic_ids = ${topics}, updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and identity = ${identity}
    returning ${contactColumns}`)
}

/** Changes whether a contact hears from us; what a report found stays. */
export async function updateContactStatus(
  tx: Tx,
  teamId: string,
  { id, status }: { id: string; status: 'subscribed' | 'unsubscribed' },
  now: Date,
): Promise<ContactRow> {
  return await tx.one(sql.prepared('update_contact_status', contactRow)`
    update contacts set status = ${status}, updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and id = ${id}
    returning ${contactColumns}`)
}

/** Takes topics off a contact; those it does not have are no change. */
export async function removeContactTopics(
  tx: Tx,
  teamId: string,
  identity: string,
  topicIds: readonly string[],
  now: Date,
): Promise<void> {
  const gone = sql.array(topicIds, 'uuid')
  await tx.query(sql.unsafe`
    update contacts set updated_at = ${touchedAt(now)}, topic_ids = array(
      select topic from unnest(topic_ids) with ordinality as t (topic, position)
      where topic <> all(${gone}) order by position)
    where team_id = ${teamId} and identity = ${identity} and topic_ids && ${gone}`)
}

const idRow = object({ id: string().defined() })

/** @returns whether there was one. */
export async function deleteContact(tx: Tx, teamId: string, identity: string): Promise<boolean> {
  const gone = await tx.maybeOne(sql.type(idRow)`
    delete from contacts where team_id = ${teamId} and identity = ${identity} returning id`)
  return gone !== null
}

const topicRow = object({
  id: string().defined(),
  name: string().defined(),
  created_at: string().defined(),
})
export type TopicRow = InferType<typeof topicRow>

/** Stores a topic. @returns the row, or null when the team has one of this name. */
export async function insertTopic(
  tx: Tx,
  teamId: string,
  topic: { id: string; name: string },
  now: Date,
): Promise<TopicRow | null> {
  return await tx.maybeOne(sql.type(topicRow)`
    insert into topics (team_id, id, name, created_at)
    values (${teamId}, ${topic.id}, ${topic.name}, ${sql.timestamp(now)})
    on conflict (team_id, name) do nothing
    returning id, name, created_at`)
}

/** A team's topics, oldest first. */
export async function topicsOfTeam(tx: Tx, teamId: string): Promise<readonly TopicRow[]> {
  return await tx.any(sql.type(topicRow)`
    select id, name, created_at from topics where team_id = ${teamId} order by id`)
}

/** Of these topics those that the team has; they stay until the transaction ends. */
export async function holdTopics(tx: Tx, teamId: string, ids: readonly string[]): Promise<Set<string>> {
  const rows = await tx.any(sql.type(idRow)`
    select id from topics where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')})
    order by id for key share`)
  return new Set(rows.map((row) => row.id))
}

/** Waits for those that hold the topic; afterwards nobody can, until the transaction ends. */
export async function lockTopic(tx: Tx, teamId: string, id: string): Promise<void> {
  await tx.query(sql.unsafe`select from topics where team_id = ${teamId} and id = ${id} for update`)
}

/**
 * Deletes a topic and takes it off every contact, in one statement; contacts are locked in the order that everybody
 * keeps. @returns the topic, or null without one.
 */
export async function deleteTopic(tx: Tx, teamId: string, id: string, now: Date): Promise<TopicRow | null> {
  return await tx.maybeOne(sql.type(topicRow)`
    with gone as (
      delete from topics where team_id = ${teamId} and id = ${id} returning id, name, created_at
    ), held as (
      select id from contacts where team_id = ${teamId} and ${id} = any(topic_ids)
      order by identity for no key update
    ), unsubscribed as (
      update contacts c set topic_ids = array_remove(topic_ids, ${id}), updated_at = ${touchedAt(now)}
      from held where c.team_id = ${teamId} and c.id = held.id
    )
    select id, name, created_at from gone`)
}
