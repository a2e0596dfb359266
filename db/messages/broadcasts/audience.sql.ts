/**
 * Queries for the audience of a broadcast: subscribed contacts with one of its topics and none of the excluded ones,
 * that meet every condition and were created before it started. Contacts are read in ID order, one page at a time.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { NIL } from 'uuid'
import { type InferType, mixed, number, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, idRow, row } from '../../postgres/rows.ts'
import type { BroadcastKey, BroadcastRow, Condition } from './broadcasts.sql.ts'

export type Audience = Pick<BroadcastRow, 'team_id' | 'topic_ids' | 'exclude_topic_ids' | 'conditions'>

const DECIMAL = '^[+-]?[0-9]+([.][0-9]+)?$'
const isDecimal = (value: string): boolean => new RegExp(DECIMAL).test(value)

/** Numbers are compared as such when both sides are decimal, anything else as text. */
function compared(property: FragmentSqlToken, op: 'gt' | 'lt', value: string): FragmentSqlToken {
  const sign = op === 'gt' ? sql.fragment`>` : sql.fragment`<`
  const asText = sql.fragment`${property} collate "C" ${sign} ${value}`
  if (!isDecimal(value)) return asText
  return sql.fragment`case when ${property} ~ ${DECIMAL} then (${property})::numeric ${sign} ${value}::numeric
    else ${asText} end`
}

function meets({ property: name, op, value }: Condition): FragmentSqlToken {
  const property = sql.fragment`properties ->> ${name}`
  const given = String(value ?? '')
  if (op === 'exists') return sql.fragment`jsonb_exists(properties, ${name})`
  if (op === 'missing') return sql.fragment`not jsonb_exists(properties, ${name})`
  if (op === 'eq') return sql.fragment`${property} = ${given}`
  // A contact without the property has another value than any.
  if (op === 'ne') return sql.fragment`${property} is distinct from ${given}`
  if (op === 'in')
    return sql.fragment`${property} = any(${sql.array(Array.isArray(value) ? value : [given], 'text')})`
  if (op === 'contains') return sql.fragment`strpos(${property}, ${given}) > 0`
  return sql.fragment`(${compared(sql.fragment`(${property})`, op, given)})`
}

export const fits = ({ topic_ids, exclude_topic_ids, conditions }: Audience) =>
  allOf(
    sql.fragment`status = 'subscribed' and suppression is null`,
    sql.fragment`topic_ids && ${sql.array(topic_ids, 'uuid')} and topic_ids <> '{}'`,
    exclude_topic_ids.length > 0 && sql.fragment`not topic_ids && ${sql.array(exclude_topic_ids, 'uuid')}`,
    ...conditions.map((condition) => sql.fragment`coalesce(${meets(condition)}, false)`),
  )

/**
 * True for a contact whose address has had no email of the broadcast, including deleted emails and an earlier contact
 * with the same address. The fence makes PostgreSQL read the emails to the address first. Without it, the planner
 * joins, or reads all emails of the broadcast, while it has no statistics about it.
 */
export const isNotReached = ({ team_id, id }: BroadcastKey) => sql.fragment`
  not exists (
    select from (
      select broadcast_id from accepted_emails
      where team_id = ${team_id} and person = contacts.identity offset 0) had
    where had.broadcast_id = ${id})
  and not exists (
    select from (
      select broadcast_id from broadcast_skips
      where team_id = ${team_id} and person = contacts.identity offset 0) skipped
    where skipped.broadcast_id = ${id})`

const identityRow = row({ identity: string() })

/**
 * Returns which of these identities are contacts that match the audience. The fence makes PostgreSQL read them by
 * their key first.
 */
export async function matchingOf(tx: Tx, audience: Audience, identities: readonly string[]) {
  const found = await tx.anyFirst(sql.type(identityRow)`
    select identity from (
      select * from contacts
      where team_id = ${audience.team_id} and identity = any(${sql.array(identities, 'text')}) offset 0) contacts
    where ${fits(audience)}`)
  return new Set(found)
}

export const audienceSize = (tx: Tx, audience: Audience) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from contacts where team_id = ${audience.team_id} and ${fits(audience)}`)

/** Counts the contacts of the audience that have no value for one of these slots. */
export const lackingMembers = (tx: Tx, audience: Audience, slots: readonly string[]) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from contacts
    where team_id = ${audience.team_id} and ${fits(audience)}
      and not jsonb_exists_all(properties, ${sql.array(slots, 'text')})`)

const textRow = row({ property: string(), text: number(), all: number() })
/** `text`: how many of `all` values of the property aren't numbers. */
export type ComparedAsText = InferType<typeof textRow>

/**
 * Counts, for each property with a number condition, the values that it compares as text, and all values. Only counts
 * contacts of the audience without its number conditions. Properties without such a value are left out.
 */
export async function comparedAsText(tx: Tx, audience: Audience) {
  const isNumber = ({ op, value }: Condition) =>
    (op === 'gt' || op === 'lt') && isDecimal(String(value ?? ''))
  const names = new Set(audience.conditions.filter(isNumber).map(({ property }) => property))
  if (names.size === 0) return []
  const conditions = audience.conditions.filter((condition) => !isNumber(condition))
  return tx.any(sql.type(textRow)`
    select name as property, count(*) filter (where properties ->> name !~ ${DECIMAL})::integer as text,
      count(*)::integer as all
    from contacts join unnest(${sql.array([...names], 'text')}) name on jsonb_exists(properties, name)
    where team_id = ${audience.team_id} and ${fits({ ...audience, conditions })}
    group by name having bool_or(properties ->> name !~ ${DECIMAL}) order by name`)
}

const memberRow = row({
  id: string(),
  email: string(),
  identity: string(),
  properties: mixed<Record<string, string>>(),
})
export type Member = InferType<typeof memberRow>

/** Returns the first member of an audience after a contact, among the team's next `look` contacts, or null. */
export const memberAfter = (tx: Tx, audience: Audience, after: string | null, look: number) =>
  tx.maybeOne(sql.type(memberRow)`
    select id, email, identity, properties from (
      select * from contacts where team_id = ${audience.team_id} and id > ${after ?? NIL} order by id limit ${look}
    ) contacts
    where ${fits(audience)} order by id limit 1`)

const lastRow = row({ last: string() })

/**
 * Returns up to `limit` members of the audience after a contact, among the team's next `look` contacts.
 * @returns the members, the cursor for the next call, and whether these were the last contacts.
 */
export async function nextMembers(
  tx: Tx,
  audience: Audience & { id: string; until: string },
  { after, look, limit }: { after: string | null; look: number; limit: number },
): Promise<{ members: readonly Member[]; cursor: string | null; ended: boolean }> {
  const from = after ?? NIL
  const behind = sql.fragment`team_id = ${audience.team_id} and id > ${from}`
  const window = sql.fragment`(
    select * from contacts where ${behind} order by id limit ${look}) contacts`
  const members = await tx.any(sql.type(memberRow)`
    select id, email, identity, properties from ${window}
    where created_at < ${audience.until} and ${fits(audience)} and ${isNotReached(audience)}
    order by id limit ${limit}`)
  if (members.length === limit) return { members, cursor: members.at(-1)?.id ?? after, ended: false }
  const end = await tx.maybeOne(sql.type(lastRow)`
    select id as last from contacts where ${behind} order by id offset ${look - 1} limit 1`)
  return { members, cursor: end?.last ?? members.at(-1)?.id ?? after, ended: end === null }
}

/** Returns the contacts that still exist. None is deleted while the account is locked. */
export async function contactsLeft(tx: Tx, teamId: string, ids: readonly string[]): Promise<Set<string>> {
  const left = await tx.anyFirst(sql.type(idRow)`
    select id from contacts where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')})`)
  return new Set(left)
}
