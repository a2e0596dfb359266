/**
 * The query behind every list and search of emails: one filter, newest first, in pages by key. An unset filter adds
 * no work. Recipients are found by an index on their identities.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { EMAIL, isCustomers, isToAny } from '../../channels/email.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow } from '../../postgres/rows.ts'
import { firstIdAt, spellingsOfId } from '../../validation/ids.ts'
import { likePattern } from '../../validation/strings.ts'
import { emailRow } from './emails.sql.ts'
import { failedInOrder, failures, hasFailed, type ListRange, rangeConditions } from './failed.sql.ts'
import { type EmailStatus, isRare } from './status.ts'

/** All set filters must match. Without `team_id`, all teams are searched. */
export type EmailCriteria = Omit<ListRange, 'before'> & {
  team_id?: string | undefined
  /** The spellings of one address's identity. */
  recipients?: readonly string[] | undefined
  /** The email's ID, idempotency key, request ID, Message-ID or provider ID. */
  id?: string | undefined
  /** Words that are all in the subject, in any case. */
  words?: readonly string[] | undefined
  /** Words that are all in the subject, or in the recipients' names and addresses. */
  text?: readonly string[] | undefined
  status?: EmailStatus | undefined
  scheduled?: boolean | undefined
  /** True for emails that have failed or expired, false for all others. Their status is `queued`. */
  failed?: boolean | undefined
  domains?: readonly string[] | undefined
  template_id?: string | undefined
  broadcast_id?: string | undefined
  /** True for the emails of broadcasts, false for all others. */
  in_broadcast?: boolean | undefined
  tag?: string | undefined
  /** `all`: include internal email, which teams don't see. For operators. */
  whose?: 'all' | undefined
}

/** At most `limit` emails. With `before`, only those after this ID in the list. */
export type EmailPage = { before?: string | undefined; limit: number }

const texts = (values: readonly string[]) => sql.array(values, 'text')

// Each part uses its own index if the team is known.
const anyIdIs = (id: string, team: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`e.id in (${EMAIL.findInTeam({ team, ...spellingsOfId(id) })})`

const failedIs = (failed: boolean, email: FragmentSqlToken): FragmentSqlToken =>
  failed ? hasFailed(email) : sql.fragment`not ${hasFailed(email)}`

// An email that is queued but was accepted by the provider isn't waiting.
const statusIs = (status: EmailStatus): FragmentSqlToken =>
  status === 'queued'
    ? sql.fragment`e.status = 'queued' and e.unfinished`
    : sql.fragment`e.status = ${status}`

const subjectHas = (words: readonly string[]): FragmentSqlToken =>
  sql.fragment`e.subject ilike all (${texts(words.map(likePattern))})`

const hasText = (words: readonly string[]): FragmentSqlToken => sql.fragment`
  concat_ws(E'\n', e.subject, array_to_string(e.to_emails, E'\n')) ilike all (${texts(words.map(likePattern))})`

const fromDomainIs = (domains: readonly string[]): FragmentSqlToken =>
  sql.fragment`substring(lower(e.from_address) from '@([^@>]+)>?$') = any(${texts(domains)})`

/**
 * Limits IDs in both tables behind the view. The planner must not see the ID: within one histogram step it expects
 * one row and chooses a nested loop (measured with 2,000,000 emails and a range of 5 hours: over 10 s instead of 20
 * ms).
 */
const idIs = (compared: FragmentSqlToken, id: string): FragmentSqlToken => {
  const bound = sql.fragment`${compared} (select ${id}::uuid)`
  return sql.fragment`(e.id ${bound} and e.state_id ${bound})`
}

export const isBefore = (id: string | undefined): FragmentSqlToken =>
  allOf(id !== undefined && idIs(sql.fragment`<`, id))

/** True if an email `e` matches the criteria, apart from its team. @param team its team, if known. */
export function fitsCriteria(criteria: EmailCriteria, team?: FragmentSqlToken): FragmentSqlToken {
  const { recipients, id, words, status, domains, template_id: template, tag, from, to, between } = criteria
  const { broadcast_id: broadcast, in_broadcast, scheduled, failed, text } = criteria
  return allOf(
    scheduled && sql.fragment`e.due_at is not null`,
    criteria.whose !== 'all' && isCustomers,
    recipients && isToAny(recipients, sql.fragment`e.to_emails`),
    id !== undefined && anyIdIs(id, team ?? sql.fragment`e.team_id`),
    words && words.length > 0 && subjectHas(words),
    text && text.length > 0 && hasText(text),
    status !== undefined && !criteria.scheduled && statusIs(status),
    failed !== undefined && failedIs(failed, sql.fragment`e`),
    domains && fromDomainIs(domains),
    template !== undefined && sql.fragment`e.template_id = ${template}`,
    broadcast !== undefined && sql.fragment`e.broadcast_id = ${broadcast}`,
    // Not `is null`: for a range of all emails the planner must not use the index of single ones and join its
    // rows one by one (measured with 5,000 emails: over 10 s instead of 20 ms).
    in_broadcast !== undefined && sql.fragment`num_nonnulls(e.broadcast_id) = ${in_broadcast ? 1 : 0}`,
    tag !== undefined && sql.fragment`e.tags::jsonb ? ${tag}`,
    from !== undefined && idIs(sql.fragment`>=`, firstIdAt(from)),
    to !== undefined && idIs(sql.fragment`<`, firstIdAt(to)),
    between && idIs(sql.fragment`>=`, between.oldest),
    between && idIs(sql.fragment`<=`, between.newest),
  )
}

/** Selects emails by their keys. @param keys a query of `of_team` and `of_id`. */
const byKeys = (keys: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  (${keys} offset 0) w cross join lateral (
    select * from emails where team_id = w.of_team and id = w.of_id offset 0) e`

/**
 * Selects emails in list order by their states, for one team, all teams, waiting emails or a rare status. Failed emails
 * of a team are selected through their failures.
 */
const statesInOrder = (criteria: EmailCriteria, before: string | undefined): FragmentSqlToken => {
  const { team_id: team, status, scheduled, failed, in_broadcast, broadcast_id, whose, from, to } = criteria
  if (failed && team !== undefined) return failedInOrder({ ...criteria, team_id: team, before })
  const bounds = allOf(
    team === undefined
      ? sql.fragment`created_at >= ${from ? sql.timestamp(from) : '-infinity'}
          and created_at < ${to ? sql.timestamp(to) : 'infinity'}`
      : sql.fragment`team_id = ${team}`,
    whose !== 'all' && EMAIL.customers,
    ...rangeConditions(sql.fragment`id`, { ...criteria, before }),
    scheduled && sql.fragment`due_at is not null`,
    status === 'queued' && !scheduled && sql.fragment`status = 'queued' and unfinished`,
    status === 'queued' && failed === false && failedIs(false, sql.fragment`m`),
    isRare(status) && sql.fragment`rare_status = ${status ?? null}`,
    in_broadcast === true && sql.fragment`broadcast_id is not null`,
    in_broadcast === false && sql.fragment`broadcast_id is null`,
    // With `is true`, the planner can't use the index of contacts and read all of the broadcast for one page.
    broadcast_id !== undefined && sql.fragment`(broadcast_id = ${broadcast_id}) is true`,
    isOfBroadcast(criteria) &&
      !isSetApart(criteria) &&
      status !== undefined &&
      sql.fragment`status = ${status}`,
  )
  // A team's single emails have their own index, on the table that reports don't change.
  const isSingle = in_broadcast === false && whose !== 'all' && !isSetApart(criteria)
  return sql.fragment`
    select team_id as of_team, id as of_id from ${isSingle ? sql.fragment`accepted_emails` : sql.fragment`email_states`} m
    where ${bounds} order by id desc`
}

/**
 * Returns the ID of the email that is `count` places after `before` among a team's emails, its emails of a rare status
 * or its emails with a failure, or null if fewer follow. Only the status and the time range of the filter count.
 */
export function emailFurther(tx: Tx, criteria: EmailCriteria, before: string | undefined, count: number) {
  const { team_id, failed } = criteria
  const places =
    failed && team_id !== undefined
      ? failures({ ...criteria, team_id, before })
      : statesInOrder({ ...criteria, in_broadcast: undefined, broadcast_id: undefined }, before)
  return tx.maybeOneFirst(sql.type(idRow)`
    select of_id as id from (${places} offset ${count - 1} limit 1) state`)
}

/** True if a filter needs more than the states of a team's emails. */
const hasOtherParts = ({ words, text, ...rest }: EmailCriteria): boolean =>
  [rest.recipients, rest.id, rest.domains, rest.template_id, rest.tag]
    .concat(words?.[0], text?.[0])
    .some((part) => part !== undefined)

/** True if the filter has one broadcast of a team. The states are enough to find its emails. */
const isOfBroadcast = ({ team_id, broadcast_id, in_broadcast, failed }: EmailCriteria): boolean =>
  team_id !== undefined && broadcast_id !== undefined && in_broadcast !== false && failed === undefined

/** True if an index contains only the emails with this status. */
const isSetApart = ({ team_id: team, status, scheduled = false, failed = false }: EmailCriteria): boolean =>
  scheduled || status === 'queued' || (team !== undefined && (failed || isRare(status)))

/**
 * Returns the keys of a page, `of_team` and `of_id`, if the states determine the page, or null. The limit is inside:
 * otherwise PostgreSQL sorts all emails of a large team when vacuum is behind (measured with 3,000,000 emails:
 * 842,000 buffers instead of 600).
 */
export function keysOfPage(criteria: EmailCriteria, { before, limit }: EmailPage): FragmentSqlToken | null {
  const { team_id, status } = criteria
  const isKept =
    isSetApart(criteria) || isOfBroadcast(criteria) || (team_id !== undefined && status === undefined)
  if (!isKept || hasOtherParts(criteria)) return null
  return sql.fragment`${statesInOrder(criteria, before)} limit ${limit}`
}

/** Returns the source of the emails and their sort column. */
export function sourceOf(criteria: EmailCriteria, page: EmailPage) {
  const keys = keysOfPage(criteria, page)
  const order = sql.fragment`w.of_id`
  if (keys) return { rows: byKeys(keys), order }
  const isNamed = criteria.recipients !== undefined || criteria.id !== undefined
  if (isNamed || !isSetApart(criteria)) return { rows: sql.fragment`emails e`, order: sql.fragment`e.id` }
  return { rows: byKeys(statesInOrder(criteria, page.before)), order }
}

/** The columns of lists, without the bodies. `html` is only included if nothing else gives the size. */
const LISTED: Readonly<Record<string, FragmentSqlToken>> = {
  html: sql.fragment`case when e.size_kb is null then e.html end as html`,
  body_text: sql.fragment`null as body_text`,
}

const listedColumns = sql.fragment`${sql.join(
  Object.keys(emailRow.fields).map((column) => LISTED[column] ?? sql.identifier(['e', column])),
  sql.fragment`, `,
)}`

/**
 * Returns a page of matching emails, newest first, without their bodies. For all teams, the rows between the time
 * limits are read in the order in which they were stored, from a small index.
 */
export async function emailsFound(tx: Tx, criteria: EmailCriteria, page: EmailPage) {
  const { team_id: id } = criteria
  const team = id === undefined ? undefined : sql.fragment`${id}`
  const { rows, order } = sourceOf(criteria, page)
  return tx.any(sql.type(emailRow)`
    select ${listedColumns} from ${rows}
    where ${allOf(team && sql.fragment`e.team_id = ${team}`, fitsCriteria(criteria, team))} and ${isBefore(page.before)}
    order by ${order} desc limit ${page.limit}`)
}
