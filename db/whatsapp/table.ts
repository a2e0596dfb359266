/** Rows of WhatsApp requests, messages and events, and the queries over them. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, type InferType, mixed, number, object, string } from 'yup'
import { firstIdAt } from '../ids.ts'
import { deadLetterOf } from '../jobs.ts'
import type { Tx } from '../pool.ts'
import { withoutJob } from '../queue/table.ts'
import { WHATSAPP_LADDER, type WhatsappEventKind, type WhatsappStatus } from './status.ts'

const stringMap = mixed<Record<string, string>>()

/** What was asked for, once for all its recipients. */
export type NewRequest = {
  team_id: string
  id: string
  template_id: string
  parameters: Readonly<Record<string, string>>
  idempotency_key: string | null
  created_at: string
}

/** One recipient of a request, as it is first stored. */
export type NewMessage = {
  team_id: string
  id: string
  request_id: string
  position: number
  recipient: string
  country: string | null
  created_at: string
}

/** Stores new requests with their messages, queued, and charges for them (limits.ts, chargeOf), in one statement. */
export async function insertRequests(
  tx: Tx,
  { requests, messages }: { requests: readonly NewRequest[]; messages: readonly NewMessage[] },
  charge: FragmentSqlToken,
): Promise<void> {
  const asked = requests.map((request) => [
    request.team_id,
    request.id,
    request.template_id,
    JSON.stringify(request.parameters),
    request.idempotency_key,
    request.created_at,
  ])
  const tuples = messages.map((message) => [
    message.team_id,
    message.id,
    message.request_id,
    message.position,
    message.recipient,
    message.country,
    message.created_at,
  ])
  await tx.query(sql.prepared('insert_whatsapp_requests', object())`
    with charged as (${charge}), asked as (
      insert into whatsapp_requests (team_id, id, template_id, parameters, idempotency_key, created_at)
      select * from ${sql.unnest(asked, ['uuid', 'uuid', 'uuid', 'json', 'text', 'timestamptz'])} as request
    )
    insert into whatsapp_messages (
      team_id, id, request_id, position, recipient, country, created_at, status)
    select team_id, id, request_id, position, recipient, country, created_at, 'queued'
    from ${sql.unnest(tuples, ['uuid', 'uuid', 'uuid', 'int2', 'text', 'text', 'timestamptz'])}
      as message (team_id, id, request_id, position, recipient, country, created_at)`)
}

const storedKeyRow = object({
  idempotency_key: string().defined(),
  request_id: string().defined(),
  first_id: string().defined(),
})

/** The requests that a team has stored under these keys, each with the id of its first message. */
export async function requestsByKeys(tx: Tx, teamId: string, keys: readonly string[]) {
  return await tx.any(sql.prepared('whatsapp_requests_by_keys', storedKeyRow)`
    select r.idempotency_key, r.id as request_id, m.id as first_id
    from whatsapp_requests r
      join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id and m.position = 0
    where r.team_id = ${teamId} and r.idempotency_key = any(${sql.array(keys, 'text')})`)
}

const status = () => string().oneOf(WHATSAPP_LADDER).defined()

const shownRow = object({ id: string().defined(), recipient: string().defined(), status: status() })
export type SentRow = InferType<typeof shownRow>

/** A request's messages as they stand now, in the order of its recipients. */
export async function messagesOfRequest(
  tx: Tx,
  teamId: string,
  requestId: string,
): Promise<readonly SentRow[]> {
  return await tx.any(sql.prepared('whatsapp_messages_of_request', shownRow)`
    select id, recipient, status from whatsapp_messages
    where team_id = ${teamId} and request_id = ${requestId} order by position`)
}

const messageRow = object({
  team_id: string().defined(),
  id: string().defined(),
  request_id: string().defined(),
  template_id: string().defined(),
  recipient: string().defined(),
  country: string().defined().nullable(),
  status: status(),
  parameters: stringMap.defined(),
  idempotency_key: string().defined().nullable(),
  created_at: string().defined(),
  requeued_at: string().defined().nullable(),
  accepted_at: string().defined().nullable(),
  provider_message_id: string().defined().nullable(),
})
export type WhatsappRow = InferType<typeof messageRow>

const messageColumns = sql.fragment`
  m.team_id, m.id, m.request_id, r.template_id, m.recipient, m.country, m.status, r.parameters, r.idempotency_key,
  m.created_at, m.requeued_at, m.accepted_at, m.provider_message_id`

const messageTables = sql.fragment`
  whatsapp_messages m join whatsapp_requests r on r.team_id = m.team_id and r.id = m.request_id`

/** A message with what was asked for, or null without one. */
export async function messageById(tx: Tx, teamId: string, id: string): Promise<WhatsappRow | null> {
  return await tx.maybeOne(sql.type(messageRow)`
    select ${messageColumns} from ${messageTables} where m.team_id = ${teamId} and m.id = ${id}`)
}

/** A team's messages, newest first. */
export async function messagesOfTeam(
  tx: Tx,
  teamId: string,
  { status: only, limit }: { status?: WhatsappStatus | undefined; limit: number },
): Promise<readonly WhatsappRow[]> {
  const onlyStatus = only === undefined ? sql.fragment`true` : sql.fragment`m.status = ${only}`
  return await tx.any(sql.type(messageRow)`
    select ${messageColumns} from ${messageTables}
    where m.team_id = ${teamId} and ${onlyStatus} order by m.id desc limit ${limit}`)
}

export type MessageRef = { team_id: string; message_id: string }

/** References as rows of a statement. */
export const refTuples = (refs: readonly MessageRef[]) =>
  sql.unnest(
    refs.map(({ team_id, message_id }) => [team_id, message_id]),
    ['uuid', 'uuid'],
  )

const outgoingRow = object({
  team_id: string().defined(),
  message_id: string().defined(),
  recipient: string().defined(),
  created_at: string().defined(),
  requeued_at: string().defined().nullable(),
  /** How often it has been put off so far, and when for the first time since it was accepted or requeued. */
  deferrals: number().defined(),
  tried_since: string().defined().nullable(),
  parameters: stringMap.defined(),
  template_id: string().defined(),
  name: string().defined(),
  language: string().defined(),
  slots: array(string().defined()).defined(),
  url_buttons: array(number().defined()).defined(),
})
export type OutgoingRow = InferType<typeof outgoingRow>

/** Those of the messages that the provider has not taken, each with what its template is now. */
export async function messagesToDeliver(
  tx: Tx,
  refs: readonly MessageRef[],
): Promise<readonly OutgoingRow[]> {
  return await tx.any(sql.prepared('whatsapp_to_deliver', outgoingRow)`
    select m.team_id, m.id as message_id, m.recipient, m.created_at, m.requeued_at, r.parameters, r.template_id,
      t.name, t.language, t.slots, t.url_buttons, e.deferrals, e.tried_since
    from ${messageTables} join whatsapp_templates t on t.team_id = r.team_id and t.id = r.template_id
      cross join lateral (
        select count(*) filter (where kind = 'deferred') as deferrals,
          -- A wait for the whole number (deliver-whatsapp.ts) is no try of this message.
          min(occurred_at) filter (where occurred_at >= coalesce(m.requeued_at, m.created_at)
            and event_key not like 'waits:%') as tried_since
        from whatsapp_events
        where team_id = m.team_id and message_id = m.id and kind in ('deferred', 'unknown')) e
    where (m.team_id, m.id) in (select * from ${refTuples(refs)} as ref (team_id, id))
      and m.status = 'queued' and m.accepted_at is null`)
}

/** One thing that happened to a message. */
export type WhatsappEvent = MessageRef & {
  /** What makes a repeat of it fall away: the provider's words for it, or the attempt. */
  event_key: string
  kind: WhatsappEventKind
  occurred_at: Date
  /** The provider's words. */
  detail: string
}

const freshEvent = object({
  team_id: string().defined(),
  message_id: string().defined(),
  event_key: string().defined(),
})

/** Stores events in one statement. @returns those that were not stored before. */
export async function insertEvents(tx: Tx, events: readonly WhatsappEvent[]) {
  const tuples = events.map((event) => [
    event.team_id,
    event.message_id,
    event.event_key,
    event.kind,
    event.occurred_at.toISOString(),
    event.detail,
  ])
  return await tx.any(sql.prepared('insert_whatsapp_events', freshEvent)`
    insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail)
    select * from ${sql.unnest(tuples, ['uuid', 'uuid', 'text', 'text', 'timestamptz', 'text'])} as event
    on conflict do nothing
    returning team_id, message_id, event_key`)
}

const eventRow = object({
  kind: string().defined(),
  occurred_at: string().defined(),
  detail: string().defined(),
})
export type WhatsappEventRow = InferType<typeof eventRow>

/** The message's timeline, oldest first; within a second, which is all that reports tell, by the ladder. */
export async function eventsOfMessage(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<readonly WhatsappEventRow[]> {
  return await tx.any(sql.type(eventRow)`
    select kind, occurred_at, detail from whatsapp_events
    where team_id = ${teamId} and message_id = ${id}
    order by date_trunc('second', occurred_at),
      coalesce(array_position(${sql.array(WHATSAPP_LADDER, 'text')}, kind), 0), occurred_at, event_key`)
}

const refRow = object({ team_id: string().defined(), message_id: string().defined() })

// Told since it was accepted or requeued last.
const gaveUp = sql.fragment`
  exists (
    select from whatsapp_events v
    where v.team_id = m.team_id and v.message_id = m.id and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.requeued_at, m.created_at))`

/**
 * Messages accepted before `before` that the provider has not taken, with neither a job nor word that they were given
 * up, oldest first. The limit counts these alone: however many wait or were given up, a lost one is found.
 */
export async function lostMessages(tx: Tx, before: Date, limit: number): Promise<readonly MessageRef[]> {
  return await tx.any(sql.type(refRow)`
    select team_id, id as message_id from whatsapp_messages m
    where status = 'queued' and accepted_at is null and created_at < ${sql.timestamp(before)}
      and coalesce(requeued_at, created_at) < ${sql.timestamp(before)}
      and ${withoutJob('deliver-whatsapp', sql.fragment`m.id`)} and not ${gaveUp}
    order by created_at limit ${limit}`)
}

const givenUpRow = object({
  team_id: string().defined(),
  message_id: string().defined(),
  since: string().defined(),
  reason: string().defined().nullable(),
})

/** Messages whose delivery job is a dead letter that their timeline does not tell of yet, oldest first. */
export async function messagesGivenUp(tx: Tx, limit: number) {
  return await tx.any(sql.type(givenUpRow)`
    select m.team_id, m.id as message_id, coalesce(m.requeued_at, m.created_at) as since,
      d.source_output ->> 'reason' as reason
    from pgboss.job d
      join whatsapp_messages m on m.team_id = (d.data ->> 'team_id')::uuid and m.id = d.source_id
    where d.name = ${deadLetterOf('deliver-whatsapp')} and d.state < 'active' and not ${gaveUp}
    order by d.created_on limit ${limit}`)
}

/** Marks rows that are still undelivered as requeued. @returns those it found. */
export async function markRequeued(
  tx: Tx,
  refs: readonly MessageRef[],
  now: Date,
): Promise<readonly MessageRef[]> {
  return await tx.any(sql.type(refRow)`
    update whatsapp_messages set requeued_at = ${sql.timestamp(now)}
    where (team_id, id) in (select * from ${refTuples(refs)} as ref (team_id, id))
      and status = 'queued' and accepted_at is null
    returning team_id, id as message_id`)
}

const countRow = object({ count: number().defined() })

/** How many messages a team stored in a period, by their ids' time (ids.ts). Behind a moved period, on no request path. */
export async function countMessages(tx: Tx, teamId: string, start: Date, end: Date): Promise<number> {
  const { count } = await tx.one(sql.type(countRow)`
    select count(*) as count from whatsapp_messages
    where team_id = ${teamId} and id >= ${firstIdAt(start)} and id < ${firstIdAt(end)}
      and created_at >= ${sql.timestamp(start)} and created_at < ${sql.timestamp(end)}`)
  return count
}
