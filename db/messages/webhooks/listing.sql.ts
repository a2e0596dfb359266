/** Queries for listing webhook messages with their attempts, and for sending them again. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, type InferType, number, string } from 'yup'
import type { DeliveryRef } from '../../channels/channel.sql.ts'
import { isCustomers, isToAny } from '../../channels/email.sql.ts'
import { DISABLED } from '../../channels/events/webhooks.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, idRow, row } from '../../postgres/rows.ts'
import { type SearchPage, type SearchPart, searchParts } from '../../postgres/search-parts.ts'
import { wasSeen } from '../../postgres/snapshot.sql.ts'
import { firstIdAt, timeOfId } from '../../validation/ids.ts'
import { isUuid } from '../../validation/strings.ts'

export const WEBHOOK_STATUSES = ['queued', 'delivered', 'failed'] as const
export type WebhookStatus = (typeof WEBHOOK_STATUSES)[number]

const tryRow = row({ at: string(), status: number().nullable(), ms: number(), response: string() })

const attemptRow = tryRow.concat(
  row({
    message_id: string(),
    event_id: string(),
    type: string(),
    message_status: string().oneOf(WEBHOOK_STATUSES),
  }),
)
export type AttemptRow = InferType<typeof attemptRow>

export const readAttempts = (tx: Tx, teamId: string, endpointId: string, limit: number) =>
  tx.any(sql.type(attemptRow)`
    select m.id as message_id, m.event_id, m.type, m.status as message_status, a.occurred_at as at, a.status, a.ms, a.detail as response
    from (
      select * from webhook_events
      where team_id = ${teamId} and endpoint_id = ${endpointId} and kind = 'attempt'
      order by occurred_at desc limit ${limit}) a
      join webhook_messages m on m.team_id = a.team_id and m.id = a.message_id
    order by a.occurred_at desc, a.event_key desc`)

const outcomeRow = row({
  id: string(),
  /** The response to the last attempt. Null without an attempt or a response. */
  status: number().nullable(),
  is_attempted: boolean(),
  is_disabled: boolean(),
})
export type OutcomeRow = InferType<typeof outcomeRow>

/** Returns the last attempts of messages, and which failed because their endpoint is disabled. */
export const readOutcomes = (tx: Tx, teamId: string, ids: readonly string[]) =>
  tx.any(sql.type(outcomeRow)`
    select message_id as id, (array_agg(status order by occurred_at desc) filter (where kind = 'attempt'))[1] as status,
      bool_or(kind = 'attempt') as is_attempted,
      (array_agg(detail order by occurred_at desc))[1] = ${DISABLED} as is_disabled
    from webhook_events
    where team_id = ${teamId} and message_id = any(${sql.array(ids, 'uuid')})
    group by message_id`)

const historyRow = row({
  kind: string().oneOf(['attempt', 'requeued', 'gave_up']),
  occurred_at: string(),
  detail: string(),
  status: number().nullable(),
  ms: number().nullable(),
})

export const readHistory = (tx: Tx, { team_id, id }: DeliveryRef) =>
  tx.any(sql.type(historyRow)`
    select kind, occurred_at, detail, status, ms from webhook_events
    where team_id = ${team_id} and message_id = ${id} order by occurred_at, event_key`)

const stateRow = row({
  id: string(),
  event_id: string(),
  type: string(),
  status: string().oneOf(WEBHOOK_STATUSES),
  created_at: string(),
  /** The message or contact of the event. */
  subject_id: string().nullable(),
})

const listedRow = stateRow.concat(row({ endpoint_id: string(), recipient: string().nullable() }))
export type ListedWebhook = InferType<typeof listedRow>

const messageRow = listedRow.concat(row({ body: string(), requeued_at: string().nullable() }))

/**
 * The recipient in the body of a message `m`, which is the event's or the first of the email. `to` of an opt-out is
 * one number.
 */
const RECIPIENT = sql.fragment`coalesce(
  m.body::json #>> '{data,recipient}', m.body::json #>> '{data,to,0}', m.body::json #>> '{data,email}',
  case json_typeof(m.body::json #> '{data,to}') when 'string' then m.body::json #>> '{data,to}' end)`

const LISTED = sql.fragment`
  m.id, m.event_id, m.type, m.status, m.created_at, m.subject_id, m.endpoint_id, ${RECIPIENT} as recipient`

/** The most time between the IDs of an event and its message, which one transaction creates. */
const MADE_WITHIN_MS = 3_600_000

/** Returns the message to an endpoint about one event, or null, by the time in the IDs. Events have no index. */
export async function webhookByEvent(
  tx: Tx,
  teamId: string,
  { endpoint_id, event_id }: { endpoint_id: string; event_id: string },
) {
  if (!isUuid(endpoint_id) || !isUuid(event_id)) return null
  return tx.maybeOne(sql.type(messageRow)`
    select ${LISTED}, body, requeued_at from webhook_messages m
    where team_id = ${teamId} and endpoint_id = ${endpoint_id} and event_id = ${event_id}
      and id > ${event_id} and id < ${firstIdAt(new Date(timeOfId(event_id) + MADE_WITHIN_MS))}
    order by id limit 1`)
}

/** Filters for messages to an endpoint. */
type WebhookFilter = { status?: WebhookStatus | undefined; type?: string | undefined }

// Literals, as the indexes have them.
const STATUS_IS: Readonly<Record<WebhookStatus, FragmentSqlToken>> = {
  queued: sql.fragment`unfinished`,
  delivered: sql.fragment`status = 'delivered'`,
  failed: sql.fragment`status = 'failed'`,
}

const fits = ({ status, type }: WebhookFilter): FragmentSqlToken =>
  allOf(status && STATUS_IS[status], type !== undefined && sql.fragment`type = ${type}`)

const isBefore = (id: string | undefined): FragmentSqlToken =>
  allOf(id !== undefined && sql.fragment`id < ${id}`)

/** Returns matching messages to an endpoint, newest first. Only those before an ID, if given. */
export const webhooksOf = (
  tx: Tx,
  { team_id, id }: DeliveryRef,
  filter: WebhookFilter,
  { before, limit }: SearchPage,
) =>
  tx.any(sql.type(listedRow)`
    select ${LISTED} from webhook_messages m
    where team_id = ${team_id} and endpoint_id = ${id} and ${fits(filter)} and ${isBefore(before)}
    order by id desc limit ${limit}`)

/**
 * Returns the messages about these subjects, newest first. Without `offset 0`, the planner would read all messages of
 * the team in the order of the list.
 */
export const webhooksAbout = (
  tx: Tx,
  teamId: string,
  {
    subjects,
    endpoint_id,
    ...filter
  }: WebhookFilter & { subjects: readonly string[]; endpoint_id?: string | undefined },
  { before, limit }: SearchPage,
) =>
  tx.any(sql.type(listedRow)`
    select ${LISTED} from (
      select * from webhook_messages
      where team_id = ${teamId} and subject_id = any(${sql.array(subjects, 'uuid')}) offset 0) m
    where ${fits(filter)} and ${isBefore(before)}
      and ${allOf(endpoint_id !== undefined && sql.fragment`endpoint_id = ${endpoint_id}`)}
    order by id desc limit ${limit}`)

/** Returns the contact with any of these identities, and the newest emails to these. */
export const subjectsOfAddress = (tx: Tx, teamId: string, identities: readonly string[], limit: number) =>
  tx.anyFirst(sql.type(idRow)`
    select id from contacts where team_id = ${teamId} and identity = any(${sql.array(identities, 'text')})
    union all (
      select id from accepted_emails
      where team_id = ${teamId} and ${isCustomers} and ${isToAny(identities)}
      order by id desc limit ${limit})`)

/** How many messages the parts of a search over all endpoints read, because their states have no index. */
const PARTS = { first: 10_000, longest: 50_000 }
const logPageRow = row({ rows: array(listedRow), reached: string().nullable() })

/** Searches the messages to all endpoints of a team, newest first. */
export const searchWebhooks = (tx: Tx, teamId: string, filter: WebhookFilter, page: SearchPage) =>
  searchParts({ ...page, ...PARTS }, (part) => webhooksOfPart(tx, teamId, filter, part))

const webhooksOfPart = (
  tx: Tx,
  teamId: string,
  filter: WebhookFilter,
  { before, limit, length }: SearchPart,
) =>
  tx.one(sql.type(logPageRow)`
    with newest as materialized (
      select id, type, status, unfinished from webhook_messages
      where team_id = ${teamId} and ${isBefore(before)}
      order by id desc limit ${length}),
    found as (select id from newest where ${fits(filter)} order by id desc limit ${limit}),
    read as (
      select ${LISTED} from found join webhook_messages m on m.team_id = ${teamId} and m.id = found.id)
    select
      (select coalesce(json_agg(read order by id desc), '[]') from read) as rows,
      case when (select count(*) from newest) = ${length} and (select count(*) from found) < ${limit}
        then (select min(id::text) from newest) end as reached`)

/** Returns the endpoint of a message, or null. */
export const endpointOfWebhook = (tx: Tx, { team_id, id }: DeliveryRef) =>
  tx.maybeOneFirst(sql.type(listedRow.pick(['endpoint_id']))`
    select endpoint_id from webhook_messages where team_id = ${team_id} and id = ${id}`)

/** The selection of an operator: the endpoint, the type, and whether to include failed messages. */
export type WebhookPick = { webhook?: string | undefined; type?: string | undefined; force: boolean }

/** Returns a team's messages to enabled endpoints that wait, or with `force` have failed, oldest first. */
export const webhooksToRequeue = (
  tx: Tx,
  teamId: string,
  { webhook, type, force }: WebhookPick,
  part?: { after: string; until: string; limit: number },
) =>
  tx.anyFirst(sql.type(idRow)`
    select id from webhook_messages
    where team_id = ${teamId} and (unfinished or ${force} and status = 'failed') and ${fits({ type })}
      and ${allOf(webhook !== undefined && sql.fragment`endpoint_id = ${webhook}`)}
      and ${allOf(part && sql.fragment`id > ${part.after} and id <= ${part.until}`)}
      and endpoint_id in (select id from webhook_endpoints where team_id = ${teamId} and state = 'enabled')
    order by id limit ${part?.limit ?? null}`)

/** The messages to send again: failed messages, all ended ones, or waiting ones immediately. */
export const REPLAYED = ['failed', 'over', 'waiting'] as const

/** Selects the messages to send again, by their creation time and type. */
export type ReplayFilter = {
  what: (typeof REPLAYED)[number]
  from?: Date | undefined
  to?: Date | undefined
  type?: string | undefined
}

const CONDITIONS = { failed: STATUS_IS.failed, over: sql.fragment`not unfinished`, waiting: STATUS_IS.queued }

/** The maximum difference between the time in an ID and the time of its message. */
const ID_CLOCK_SKEW_MS = 3_600_000

/** Messages created between two times. IDs have nearly the same times, so that nothing outside is read. */
const madeBetween = ({ from, to }: Pick<ReplayFilter, 'from' | 'to'>): FragmentSqlToken => {
  const idAt = (at: Date, aside: number) => firstIdAt(new Date(at.getTime() + aside))
  return allOf(
    from && sql.fragment`id >= ${idAt(from, -ID_CLOCK_SKEW_MS)} and created_at >= ${sql.timestamp(from)}`,
    to && sql.fragment`id <= ${idAt(to, ID_CLOCK_SKEW_MS)} and created_at <= ${sql.timestamp(to)}`,
  )
}

const isReplayed = ({ team_id, id }: DeliveryRef, { what, type, ...made }: ReplayFilter): FragmentSqlToken =>
  sql.fragment`(team_id = ${team_id} and endpoint_id = ${id} and ${CONDITIONS[what]} and ${madeBetween(made)}
    and ${fits({ type })})`

/** Returns the IDs of up to `limit` messages to send again, above `after`, in order. Locks the messages. */
export const replayable = (
  tx: Tx,
  { after, limit, ...endpoint }: DeliveryRef & { after: string; limit: number },
  { seen, ...filter }: ReplayFilter & { seen: string },
) =>
  tx.anyFirst(sql.type(idRow)`
    select id from webhook_messages m
    where ${isReplayed(endpoint, filter)} and id > ${after} and ${wasSeen(sql.fragment`m`, seen)}
    order by id limit ${limit} for no key update`)

export const countReplayable = (
  tx: Tx,
  { limit, ...endpoint }: DeliveryRef & { limit: number },
  filter: ReplayFilter,
) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*) as count from (
      select from webhook_messages where ${isReplayed(endpoint, filter)} limit ${limit}) found`)
