/**
 * Queries for the dashboard's contacts: a filtered list by key, their properties, and messages sent to one.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, string } from 'yup'
import { isCustomers } from '../../channels/email.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import { likePattern } from '../../validation/strings.ts'
import {
  type ContactRow,
  type ContactStatus,
  contactColumns,
  contactRow,
  hasAsciiForm,
  holdsPart,
  rowHoldsPart,
} from './contacts.sql.ts'
import { hasTopic } from './topics.sql.ts'

export type ContactSearch = {
  /** A part of the address, as it was given or in ASCII form. */
  email?: string | undefined
  /** Each of them is somewhere in the address, or in the value of a property, whatever the case. */
  words?: readonly string[] | undefined
  status?: ContactStatus | undefined
  topic?: string | undefined
  /** The import that stored them, new or known: as long as it is listed. */
  import?: string | undefined
}

/** A page: what follows `before`, newest first, at most `limit` contacts. */
type ContactPage = { before?: string | undefined; limit: number }

/** What leads to the contacts that fit: any index, that of topics, or a look at the next stretch of the list. */
type Way = 'index' | 'topic' | { look: number }

const newestFirst = sql.fragment`order by created_at desc, id desc`

const placeOf = (teamId: string, id: string) =>
  sql.fragment`(select created_at, id from contacts where team_id = ${teamId} and id = ${id})`

/** Whether a row holds each of the words. There is no index on what is free-form. */
const rowHoldsWords = (words: readonly string[]) =>
  sql.fragment`not exists (
    select from unnest(${sql.array(words.map(likePattern), 'text')}) word
    where not (email ilike word or identity ilike word
      or exists (select from jsonb_each_text(properties) p where p.value ilike word)))`

/** Whether an import stored it: its slices keep the ids. */
const storedBy = (teamId: string, importId: string) =>
  sql.fragment`id in (
    select unnest(contact_ids) from contact_import_slices
    where team_id = ${teamId} and import_id = ${importId})`

/** A team's contacts that fit. */
export async function contactsFound(
  tx: Tx,
  teamId: string,
  { email, words, status, topic, import: imported }: ContactSearch,
  { before, limit, way }: ContactPage & { way: Way },
): Promise<readonly ContactRow[]> {
  const isLook = typeof way === 'object'
  const ascii = !isLook && (await hasAsciiForm(tx, teamId, email))
  const ofTeam = sql.fragment`team_id = ${teamId}`
  const withTopic = topic !== undefined && hasTopic(topic)
  const after = before !== undefined && sql.fragment`(created_at, id) < ${placeOf(teamId, before)}`
  const fits = allOf(
    ofTeam,
    status !== undefined && sql.fragment`status = ${status}`,
    email !== undefined && (isLook ? rowHoldsPart(email) : holdsPart(teamId, email, ascii)),
    words !== undefined && rowHoldsWords(words),
    withTopic,
    imported !== undefined && storedBy(teamId, imported),
    after,
  )
  // The planner thinks that any topic has half a percent of all contacts, and that an index on three letters helps to
  // find two. `offset` and `limit` have the chosen way taken first. A topic is one team's: with the team beside it, the
  // planner would read all of the team's keys too.
  const among = (): FragmentSqlToken => {
    if (way === 'index') return sql.fragment`contacts`
    return way === 'topic'
      ? sql.fragment`(select * from contacts where ${allOf(withTopic)} offset 0) contacts`
      : sql.fragment`(
          select * from contacts where ${allOf(ofTeam, after)} ${newestFirst} limit ${way.look}) contacts`
  }
  // Ids from an index alone, then only the page's own rows.
  return tx.any(sql.type(contactRow)`
    select ${contactColumns} from contacts
    join (
      select team_id as page_team, id as page_id from ${among()} where ${fits} ${newestFirst} limit ${limit}
    ) page on team_id = page_team and id = page_id ${newestFirst}`)
}

/** The teams that have this contact: each is asked by its index. */
export const teamsWithContact = (tx: Tx, identity: string) =>
  tx.anyFirst(sql.type(idRow)`
    select t.id from teams t cross join lateral (
      select from contacts where team_id = t.id and identity = ${identity} offset 0) own`)

/**
 * The teams of some contacts with this part in their address, once for each contact. An index leads to those of a rare
 * part. Of one that many have, any first ones do.
 */
export const teamsOfContactsWith = (tx: Tx, part: string, limit: number) =>
  tx.anyFirst(sql.type(idRow)`
    select team_id as id from contacts where email ilike ${likePattern(part)} limit ${limit}`)

/** The contact that is `count` places further in the list than `before`; null when fewer follow. */
export async function contactFurther(tx: Tx, teamId: string, before: string | undefined, count: number) {
  const following = allOf(before !== undefined && sql.fragment`(created_at, id) < ${placeOf(teamId, before)}`)
  return tx.maybeOneFirst(sql.type(idRow)`
    select id from contacts where team_id = ${teamId} and ${following} ${newestFirst}
    offset ${count - 1} limit 1`)
}

/** How many contacts are asked which properties they have, and how many names are answered. */
const CONTACTS_ASKED = 1_000
const MAX_NAMES = 100

const nameRow = row({ name: string() })

/** What the properties of a team's latest contacts are called, the most common first. */
export const propertyNames = (tx: Tx, teamId: string) =>
  tx.anyFirst(sql.type(nameRow)`
    select name from (
      select properties from contacts where team_id = ${teamId} ${newestFirst} limit ${CONTACTS_ASKED}) contacts,
      jsonb_object_keys(properties) name
    group by name order by count(*) desc, name limit ${MAX_NAMES}`)

/** Which of these properties none of a team's latest contacts has. */
export async function missingProperties(
  tx: Tx,
  teamId: string,
  names: readonly string[],
): Promise<readonly string[]> {
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

/** The latest emails to an address, whatever its spelling: `identities` are its spellings' own. */
export const emailsToContact = (tx: Tx, teamId: string, identities: readonly string[], limit: number) =>
  tx.any(sql.type(emailRow)`
    select e.id, e.subject, s.status, e.created_at from (
      select id, subject, created_at from accepted_emails
      where team_id = ${teamId} and ${isCustomers} and recipient_identities(to_emails) && ${sql.array(identities, 'text')}
      order by id desc limit ${limit}) e
    cross join lateral (select status from email_states where team_id = ${teamId} and id = e.id offset 0) s
    order by e.id desc`)
