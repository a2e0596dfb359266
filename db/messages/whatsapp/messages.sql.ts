/** Rows of WhatsApp requests and messages, and the queries over them. Their events are in events.sql.ts. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import { isSending } from '../../accounts/teams/teams.sql.ts'
import { WHATSAPP_LADDER } from '../../channels/whatsapp.ts'
import { lastOf } from '../../postgres/joined.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import type { Times } from '../../validation/moments.ts'
import { TEMPLATE_STATES, type WhatsappStatus } from './status.ts'
import type { TemplateParts } from './template.ts'

const stringMap = mixed<Record<string, string>>()

export type NewRequest = Pick<WhatsappRow, 'team_id' | 'id' | 'template_id' | 'parameters'> &
  Pick<WhatsappRow, 'idempotency_key' | 'http_request_id' | 'created_at'>

/** One recipient of a request, as first stored. */
export type NewMessage = Times &
  Pick<WhatsappRow, 'team_id' | 'id' | 'request_id' | 'recipient' | 'country' | 'created_at'> & {
    position: number
    /** The number that sends it. Null: the default one. */
    phone_number_id: string | null
    /** True if version 0.1.0 would send it wrongly (template.ts). */
    parts: boolean
  }

const REQUEST = {
  ...{ team_id: 'uuid', id: 'uuid', template_id: 'uuid', parameters: 'json' },
  ...{ idempotency_key: 'text', http_request_id: 'text', created_at: 'timestamptz' },
}
const MESSAGE = {
  ...{ team_id: 'uuid', id: 'uuid', request_id: 'uuid', position: 'int2' },
  ...{ recipient: 'text', country: 'text', phone_number_id: 'text', parts: 'bool' },
  ...{ created_at: 'timestamptz', scheduled_at: 'timestamptz' },
  ...{ expires_at: 'timestamptz', due_at: 'timestamptz' },
}

/** `due` is the number of jobs. With `last`, the statement also commits its transaction. */
type Stores = { charge: FragmentSqlToken; jobs: FragmentSqlToken; due: number; last: boolean }

const INSERT_REQUESTS = 'insert_whatsapp_requests'

/**
 * Stores new requests with their messages, queued, charges for them (limits.ts, buildCharges) and stores their jobs, in
 * one statement. Fails with a division by zero if it doesn't store `due` jobs.
 */
export const insertRequests = async (
  tx: Tx,
  { requests, messages }: { requests: readonly NewRequest[]; messages: readonly NewMessage[] },
  { charge, jobs, due, last }: Stores,
): Promise<void> =>
  void (await tx.query(sql.prepared(last ? lastOf(INSERT_REQUESTS) : INSERT_REQUESTS, object())`
    with charged as (${charge}), asked as (
      insert into whatsapp_requests (
        team_id, id, template_id, parameters, idempotency_key, http_request_id, created_at)
      select * from ${rowsOf('request', REQUEST, requests)}
    ), stored as (
      insert into whatsapp_messages (
        team_id, id, request_id, position, recipient, country, phone_number_id, parts, created_at, scheduled_at,
        expires_at, due_at, status)
      select team_id, id, request_id, position, recipient, country, phone_number_id, parts, created_at,
        scheduled_at, expires_at, due_at, 'queued'
      from ${rowsOf('message', MESSAGE, messages)}
    ), job as (${jobs})
    select 1 / (count(*) = ${due})::int from job`))

const storedKeyRow = row({
  team_id: string(),
  idempotency_key: string(),
  request_id: string(),
  first_id: string(),
})

/** Returns the requests that teams have stored under these keys, with the ID of the first existing message. */
export const requestsByKeys = (tx: Tx, keys: readonly { team_id: string; key: string }[]) =>
  tx.any(sql.prepared('whatsapp_requests_by_keys', storedKeyRow)`
    select r.team_id, r.idempotency_key, r.id as request_id, m.id as first_id
    from ${rowsOf('w', { team_id: 'uuid', key: 'text' }, keys)}
      join whatsapp_requests r on r.team_id = w.team_id and r.idempotency_key = w.key
      cross join lateral (
        select id from whatsapp_messages where team_id = r.team_id and request_id = r.id
        order by position limit 1) m`)

/** The price category of a message, from the last status that had one. */
export type Pricing = { category: string | null; type: string | null; billable: boolean | null }

export const messageRow = row({
  team_id: string(),
  id: string(),
  request_id: string(),
  template_id: string(),
  recipient: string(),
  country: string().nullable(),
  status: string().oneOf(WHATSAPP_LADDER),
  parameters: stringMap,
  idempotency_key: string().nullable(),
  http_request_id: string().nullable(),
  created_at: string(),
  requeued_at: string().nullable(),
  accepted_at: string().nullable(),
  provider_message_id: string().nullable(),
  /** The recipient's ID at the provider. Null if it is the number's digits. */
  wa_id: string().nullable(),
  pricing: mixed<Pricing>().nullable(),
  /** The times from the request. Null for most messages. */
  scheduled_at: string().nullable(),
  expires_at: string().nullable(),
  /** When it becomes due. Null unless it is scheduled. */
  due_at: string().nullable(),
})
export type WhatsappRow = InferType<typeof messageRow>

const shownRow = messageRow.pick(['id', 'recipient', 'status', 'scheduled_at', 'expires_at'])
export type SentRow = InferType<typeof shownRow>

/** Returns a request's messages with their current status, in the order of its recipients. */
export const messagesOfRequest = (tx: Tx, teamId: string, requestId: string) =>
  tx.any(sql.prepared('whatsapp_messages_of_request', shownRow)`
    select id, recipient, ${shownStatus}, scheduled_at, expires_at from whatsapp_messages m
    where team_id = ${teamId} and request_id = ${requestId} order by position`)

/** True if a row `m` waits for another attempt after it was reported as sent. It is still shown as sent. */
const isSentAgain = sql.fragment`(m.was_sent and m.status = 'queued')`

const shownStatus = sql.fragment`case when ${isSentAgain} then 'sent' else m.status end as status`

/** Returns the condition for rows `m` whose displayed status is this one. */
export function hasStatus(status: WhatsappStatus): FragmentSqlToken {
  if (status === 'sent') return sql.fragment`(m.status = 'sent' or ${isSentAgain})`
  return status === 'queued'
    ? sql.fragment`(m.status = 'queued' and not m.was_sent)`
    : sql.fragment`m.status = ${status}`
}

export const messageColumns = sql.fragment`
  m.team_id, m.id, m.request_id, r.template_id, m.recipient, m.country, ${shownStatus}, r.parameters,
  r.idempotency_key, r.http_request_id, m.created_at, m.requeued_at, m.accepted_at, m.provider_message_id, m.wa_id,
  m.pricing, m.scheduled_at, m.expires_at, m.due_at`

// Looks up each request by its key. With a join, the planner would read and sort all messages of a team with some
// thousands.
const withRequests = (messages: FragmentSqlToken) => sql.fragment`
  ${messages} m cross join lateral (
    select * from whatsapp_requests where team_id = m.team_id and id = m.request_id offset 0) r`

/** Selects messages with their requests: all (the caller restricts the team), or a team's waiting ones. */
export function messagesFrom(teamId: string, status: WhatsappStatus | undefined): FragmentSqlToken {
  if (status !== 'queued') return withRequests(sql.fragment`whatsapp_messages`)
  // A message that is queued but was accepted by the provider isn't waiting.
  const queued = sql.fragment`select * from whatsapp_messages where team_id = ${teamId} and status = 'queued'`
  return withRequests(sql.fragment`(${queued} and unfinished)`)
}

export const messageById = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(messageRow)`
    select ${messageColumns} from ${messagesFrom(teamId, undefined)} where m.team_id = ${teamId} and m.id = ${id}`)

export type MessageRef = { team_id: string; message_id: string }

export const keyOf = ({ team_id, message_id }: MessageRef): string => `${team_id}/${message_id}`

/** How references to messages travel, as rows of a statement. */
export const MESSAGE_REF = { team_id: 'uuid', message_id: 'uuid' }

const outgoingRow = row({
  team_id: string(),
  message_id: string(),
  recipient: string(),
  /** When its attempts start to count: when it was accepted, or requeued manually. */
  since: string(),
  /** Since then: deferred attempts, attempts without a response, and the time of the first. */
  deferrals: number(),
  unknowns: number(),
  tried_since: string().nullable(),
  http_request_id: string().nullable(),
  expires_at: string().nullable(),
  parameters: stringMap,
  template_id: string(),
  name: string(),
  language: string(),
  slots: array(string()),
  url_buttons: array(number()),
  /** True if the template belongs to the account of the number. */
  own_template: boolean(),
  parts: mixed<TemplateParts>().nullable(),
  template_status: string().oneOf(TEMPLATE_STATES),
  category: string().nullable(),
  test: boolean(),
})
export type OutgoingWhatsappRow<T extends boolean = boolean> = InferType<typeof outgoingRow> & { test: T }

const numberMessageRow = outgoingRow.concat(
  row({
    phone_number_id: string(),
    /** Null if the number was removed. */
    number_name: string().nullable(),
    access_token: mixed<Buffer>().nullable(),
    messages_per_second: number().nullable(),
    paused: boolean(),
  }),
)
export type NumberMessageRow = InferType<typeof numberMessageRow> & { test: false }

/** The account of the default number. Null if it is unknown. */
const defaultAccount = sql.fragment`(select account_id from whatsapp_numbers where name = 'default')`

/**
 * Reads messages that the provider hasn't accepted and whose team can send, with their current template. Each is
 * looked up by its key. With tables that were never analyzed, the planner scanned all messages of the team (30 of
 * 20,000 took half a second), or read each message once per team.
 * @param columns further columns of `m` and of the number `n`.
 * @param number the condition on the number.
 */
const outgoing = (
  refs: readonly MessageRef[],
  { test, columns, number }: { test: boolean; columns: FragmentSqlToken; number: FragmentSqlToken },
) => sql.fragment`
    select m.team_id, m.id as message_id, m.recipient, coalesce(m.tries_from, m.created_at) as since,
      r.http_request_id, r.parameters, r.template_id, t.name, t.language, t.slots, t.url_buttons,
      t.parts, t.status as template_status, t.category,
      coalesce(t.account_id, ${defaultAccount}) is not distinct from coalesce(n.account_id, ${defaultAccount}) as own_template,
      m.expires_at, ${test}::boolean as test, past.* ${columns}
    from ${rowsOf('ref', MESSAGE_REF, refs)}
      cross join lateral (
        select * from whatsapp_messages
        where team_id = ref.team_id and id = ref.message_id and unfinished and ${number} offset 0) m
      cross join lateral (
        select * from whatsapp_requests where team_id = m.team_id and id = m.request_id offset 0) r
      cross join lateral (
        select from teams s where s.id = m.team_id and ${isSending({ test })} offset 0) team
      cross join lateral (
        select * from whatsapp_templates where team_id = m.team_id and id = r.template_id offset 0) t
      left join whatsapp_numbers n on n.phone_number_id = m.phone_number_id and n.name <> 'default'
      cross join lateral (
        select count(*) filter (where kind = 'deferred') as deferrals,
          count(*) filter (where kind = 'unknown') as unknowns, min(occurred_at) as tried_since
        from whatsapp_events
        where team_id = m.team_id and message_id = m.id and kind in ('deferred', 'unknown')
          and occurred_at >= coalesce(m.tries_from, m.created_at)) past`

/**
 * Reads waiting messages of the default number.
 * @param test true for the simulator, which only reads messages of test teams. All others never read those.
 */
export async function messagesToDeliver<T extends boolean = false>(
  tx: Tx,
  refs: readonly MessageRef[],
  test = false as T,
): Promise<readonly OutgoingWhatsappRow<T>[]> {
  const of = { test, columns: sql.fragment``, number: sql.fragment`phone_number_id is null` }
  const rows = await tx.any(sql.prepared('whatsapp_to_deliver', outgoingRow)`${outgoing(refs, of)}`)
  // The query guarantees this type.
  return rows as readonly OutgoingWhatsappRow<T>[]
}

/** Reads waiting messages of other numbers, each with its number. */
export async function messagesOfNumbers(tx: Tx, refs: readonly MessageRef[]) {
  const columns = sql.fragment`,
      m.phone_number_id, n.name as number_name, n.access_token, n.messages_per_second,
      n.paused_at is not null as paused`
  const of = { test: false, columns, number: sql.fragment`phone_number_id is not null` }
  const rows = await tx.any(sql.prepared('whatsapp_of_numbers', numberMessageRow)`${outgoing(refs, of)}`)
  // The query guarantees this type.
  return rows as readonly NumberMessageRow[]
}
