/** Queries for the dashboard's contacts. */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, string } from 'yup'
import { isCustomers, isToAny } from '../../channels/email.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, nameRow, row } from '../../postgres/rows.ts'
import type { SearchPage } from '../../postgres/search-parts.ts'
import { likePattern } from '../../validation/strings.ts'
import {
  type ContactRow,
  type ContactStatus,
  contactColumns,
  contactRow,
  hasAsciiForm,
  matchesPart,
  rowMatchesPart,
} from './contacts.sql.ts'
import { hasTopic } from './topics.sql.ts'

export type ContactSearch = {
  email?: string | undefined
  /** Each must appear in the address or in the value of a property, in any case. */
  words?: readonly string[] | undefined
  status?: ContactStatus | undefined
  topic?: string | undefined
  /** The import that stored them, new or not. Works as long as the import is listed. */
  import?: string | undefined
}

/** How to find the contacts: with any index, with the index on topics, or in the next `look` contacts. */
type Way = 'index' | 'topic' | { look: number }

const newestFirst = sql.fragment`order by created_at desc, id desc`

const placeOf = (teamId: string, id: string) =>
  sql.fragment`(select created_at, id from contacts where team_id = ${teamId} and id = ${id})`

/** Matches rows that contain all terms. Free-form values have no index. */
const rowHoldsWords = (words: readonly string[]) =>
  sql.fragment`not exists (
    select from unnest(${sql.array(words.map(likePattern), 'text')}) word
    where not (email ilike word or identity ilike word
      or exists (select from jsonb_each_text(properties) p where p.value ilike word)))`

/** Matches contacts that an import stored. Its slices store their IDs. */
const storedBy = (teamId: string, importId: string) =>
  sql.fragment`id in (
    select unnest(contact_ids) from contact_import_slices
    where team_id = ${teamId} and import_id = ${importId})`

export async function contactsFound(
  tx: Tx,
  teamId: string,
  { email, words, status, topic, import: imported }: ContactSearch,
  { before, limit, way }: SearchPage & { way: Way },
): Promise<readonly ContactRow[]> {
  const isLook = typeof way === 'object'
  const ascii = !isLook && (await hasAsciiForm(tx, teamId, email))
  const ofTeam = sql.fragment`team_id = ${teamId}`
  const withTopic = topic !== undefined && hasTopic(topic)
  const after = before !== undefined && sql.fragment`(created_at, id) < ${placeOf(teamId, before)}`
  const fits = allOf(
    ofTeam,
    status !== undefined && sql.fragment`status = ${status}`,
    email !== undefined && (isLook ? rowMatchesPart(email) : matchesPart(teamId, email, ascii)),
    words !== undefined && rowHoldsWords(words),
    withTopic,
    imported !== undefined && storedBy(teamId, imported),
    after,
  )
  // The planner assumes that every topic has half a percent of all contacts, and that a trigram index helps to find
  // two letters. `offset` and `limit` force it to start with the chosen way. The topic way doesn't filter by team,
  // because the planner would also read all keys of the team.
  const among = (): FragmentSqlToken => {
    if (way === 'index') return sql.fragment`contacts`
    return way === 'topic'
      ? sql.fragment`(select * from contacts where ${allOf(withTopic)} offset 0) contacts`
      : sql.fragment`(
          select * from contacts where ${allOf(ofTeam, after)} ${newestFirst} limit ${way.look}) contacts`
  }
  // IDs from an index only, then the rows of the page.
  return tx.any(sql.type(contactRow)`
    select ${contactColumns} from contacts
    join (
      select team_id as page_team, id as page_id from ${among()} where ${fits} ${newestFirst} limit ${limit}
    ) page on team_id = page_team and id = page_id ${newestFirst}`)
}

/** Returns the teams that have this contact, with one index lookup per team. */
export const teamsWithContact = (tx: Tx, identity: string) =>
  tx.anyFirst(sql.type(idRow)`
    select t.id from teams t cross join lateral (
      select from contacts where team_id = t.id and identity = ${identity} offset 0) own`)

/**
 * Returns the teams of contacts whose address contains this part, once per contact. For a common part, the first
 * matches in any order.
 */
export const teamsOfContactsWith = (tx: Tx, part: string, limit: number) =>
  tx.anyFirst(sql.type(idRow)`
    select team_id as id from contacts where email ilike ${likePattern(part)} limit ${limit}`)

/** Returns the contact that is `count` places after `before` in the list, or null if fewer follow. */
export async function contactFurther(tx: Tx, teamId: string, before: string | undefined, count: number) {
  const following = allOf(before !== undefined && sql.fragment`(created_at, id) < ${placeOf(teamId, before)}`)
  return tx.maybeOneFirst(sql.type(idRow)`
    select id from contacts where team_id = ${teamId} and ${following} ${newestFirst}
    offset ${count - 1} limit 1`)
}

/** The number of contacts that are searched for property names, and the most names returned. */
const CONTACTS_ASKED = 1_000
const MAX_NAMES = 100

/** Returns the names of properties in a team's latest contacts, most common first. */
export const propertyNames = (tx: Tx, teamId: string) =>
  tx.anyFirst(sql.type(nameRow)`
    select name from (
      select properties from contacts where team_id = ${teamId} ${newestFirst} limit ${CONTACTS_ASKED}) contacts,
      jsonb_object_keys(properties) name
    group by name order by count(*) desc, name limit ${MAX_NAMES}`)

/** Maximum number of values per property and in total, and the maximum length of a value. */
const MAX_VALUES = { each: 8, all: 100, length: 60 }

const valueRow = row({ name: string(), value: string() })
export type PropertyValue = InferType<typeof valueRow>

/** Returns values that several of a team's latest contacts have, the most common of each property first. */
export const propertyValues = (tx: Tx, teamId: string) =>
  tx.any(sql.type(valueRow)`
    select name, value from (
      select name, value, row_number() over (partition by name order by count(*) desc, value) as place from (
        select properties from contacts where team_id = ${teamId} ${newestFirst} limit ${CONTACTS_ASKED}) contacts,
        jsonb_each_text(properties) p (name, value)
      where length(value) between 1 and ${MAX_VALUES.length}
      group by name, value having count(*) > 1) common
    where place <= ${MAX_VALUES.each} order by place, name limit ${MAX_VALUES.all}`)

/** Returns the properties that none of a team's latest contacts has. */
export async function missingProperties(tx: Tx, teamId: string, names: readonly string[]) {
  if (names.length === 0) return []
  const missing = await tx.anyFirst(sql.type(nameRow)`
    select unnest(${sql.array(names, 'text')}) as name
    except select jsonb_object_keys(properties) from (
      select properties from contacts where team_id = ${teamId} ${newestFirst} limit ${CONTACTS_ASKED}) contacts`)
  const those = new Set(missing)
  return names.filter((each) => those.has(each))
}

const recipientRow = row({ email: string(), identity: string(), suppression: string().nullable() })
export type RecipientContact = InferType<typeof recipientRow>

export const contactsWithIdentities = (tx: Tx, teamId: string, identities: readonly string[]) =>
  tx.any(sql.type(recipientRow)`
    select email, identity, suppression from contacts
    where team_id = ${teamId} and identity = any(${sql.array(identities, 'text')}) order by identity`)

const emailRow = row({ id: string(), subject: string(), status: string(), created_at: string() })
export type SentEmailRow = InferType<typeof emailRow>

/** Returns the latest emails to an address. `identities` are the identities of its spellings. */
export const emailsToContact = (tx: Tx, teamId: string, identities: readonly string[], limit: number) =>
  tx.any(sql.type(emailRow)`
    select e.id, e.subject, s.status, e.created_at from (
      select id, subject, created_at from accepted_emails
      where team_id = ${teamId} and ${isCustomers} and ${isToAny(identities)}
      order by id desc limit ${limit}) e
    cross join lateral (select status from email_states where team_id = ${teamId} and id = e.id offset 0) s
    order by e.id desc`)
