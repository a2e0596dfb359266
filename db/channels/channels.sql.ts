/**
 * The channels that messages go out by, as one value each: everything that code beyond a channel's own folder needs to
 * know of it. Code that does something for every channel walks over CHANNELS and names none of them.
 * To add a channel: a value here, its job in db/queue/jobs.ts, and how a worker sends it in workers/registry.ts.
 * Must not know what a message says, nor a provider.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import type { SharedJob } from '../queue/jobs.ts'
import { SIGN_IN_TAG } from '../text/tags.ts'
import { EMAIL_LADDER, WHATSAPP_LADDER } from './ladder.ts'

/** A message, whatever its channel. */
export type DeliveryRef = { team_id: string; id: string }

/** Jobs that deliver a message. */
export type DeliveryJob = SharedJob

/** An id as it may be spelt: our own, a provider's, a request's, or an idempotency key. */
type Spellings = { uuids: readonly string[]; texts: readonly string[] }
/** A team, and an id. */
export type NamedBy = Spellings & { team: FragmentSqlToken }

export type ChannelName = 'email' | 'whatsapp'

/** What delivery, requeueing and the sweep know of messages, whether or not they are of a channel. */
export type Deliverable<J extends DeliveryJob = DeliveryJob> = {
  /** Its name in figures, metrics and rows. */
  name: ChannelName | 'webhook'
  noun: string
  job: J
  /** The queue that a row is delivered by. */
  job_of: FragmentSqlToken
  /** What a row's job must say of its sender, where messages have senders of their own. */
  sender_of: FragmentSqlToken
  /** The table of what becomes of its messages: their status, and what else changes. */
  rows: FragmentSqlToken
  events: FragmentSqlToken
  /** The column that names a message in its events. */
  message: FragmentSqlToken
  /** Whether its events tell recipients apart; else they keep the provider's fault code. */
  by_recipient: boolean
  /** Whether a row was refused for good and surely never handed over: `requeue --force` takes it back. */
  refused: FragmentSqlToken
  /** The status of a message that was given up; null: it stays `queued`, and unfinished. */
  given_up_as: string | null
}

export type Channel<J extends DeliveryJob = DeliveryJob> = Deliverable<J> & {
  name: ChannelName
  /** What a person calls the channel, and one message of it. */
  title: string
  /** Where its pages are, below a team's. */
  path: string
  /** What its messages are counted under in a team's allowance. */
  quota: 'emails' | 'whatsapp'
  /** Its statuses, lowest first. */
  ladder: readonly string[]
  /** Whether a row is the team's own, and no sign-in mail of ours. */
  customers: FragmentSqlToken
  /** The table of what was accepted, where it stands apart from `rows`: a row is deleted with its other half. */
  accepted: FragmentSqlToken | null
  /** The broadcast that a row is of. */
  broadcast: FragmentSqlToken
  /** The query for the ids of a team's messages that an id names; each of its parts is a look-up by an index. */
  named: (by: NamedBy) => FragmentSqlToken
  /** The query for messages of any team that an id names, unless it is an idempotency key. */
  anywhere: (by: Spellings) => FragmentSqlToken
  /** The query for the ids of a team's messages that have an idempotency key. */
  keyed: (by: Omit<NamedBy, 'uuids'>) => FragmentSqlToken
}

/**
 * Whether an accepted email is the team's own, and no sign-in mail of ours. The API's have a request's id, so that tags
 * are read of the few others alone.
 */
export const isCustomers = sql.fragment`
  (http_request_id is not null or broadcast_id is not null or strpos(tags::text, ${JSON.stringify(SIGN_IN_TAG)}) = 0)`

const anyUuid = (uuids: readonly string[]) => sql.fragment`any(${sql.array([...uuids], 'uuid')})`
const anyText = (texts: readonly string[]) => sql.fragment`any(${sql.array([...texts], 'text')})`

export const EMAIL: Channel<'deliver-email'> = {
  name: 'email',
  title: 'Email',
  noun: 'email',
  path: 'emails',
  job: 'deliver-email',
  job_of: sql.fragment`case when broadcast_id is null then 'deliver-email' else 'deliver-broadcast' end`,
  quota: 'emails',
  ladder: EMAIL_LADDER,
  rows: sql.fragment`email_states`,
  accepted: sql.fragment`accepted_emails`,
  events: sql.fragment`email_events`,
  message: sql.fragment`email_id`,
  by_recipient: true,
  given_up_as: null,
  sender_of: sql.fragment`null::text`,
  customers: sql.fragment`in_figures`,
  broadcast: sql.fragment`broadcast_id`,
  refused: sql.fragment`(status = 'bounced' and provider_message_id is null and not exists (
    select from email_events v
    where v.team_id = email_states.team_id and v.email_id = email_states.id
      and v.kind in ('sent', 'delivered', 'unknown')))`,
  named: ({ team, uuids, texts }) => sql.fragment`
    select id from accepted_emails
    where team_id = ${team} and (id = ${anyUuid(uuids)} or idempotency_key = ${anyText(texts)}
      or http_request_id = ${anyText(texts)})
    union all
    select id from email_states where team_id = ${team} and provider_message_id = ${anyText(texts)}`,
  anywhere: ({ uuids, texts }) => sql.fragment`
    select team_id, id from accepted_emails where id = ${anyUuid(uuids)}
    union select team_id, id from email_states where provider_message_id = ${anyText(texts)}
    union select team_id, id from accepted_emails where http_request_id = ${anyText(texts)}`,
  keyed: ({ team, texts }) => sql.fragment`
    select id from accepted_emails where team_id = ${team} and idempotency_key = ${anyText(texts)}`,
}

/** Emails of broadcasts: emails like any other, but in a queue of their own, so that single ones go first. */
export const BROADCAST: Channel<'deliver-broadcast'> = {
  ...EMAIL,
  title: 'Mail of broadcasts',
  job: 'deliver-broadcast',
}

export const WHATSAPP: Channel<'deliver-whatsapp'> = {
  name: 'whatsapp',
  title: 'WhatsApp',
  noun: 'WhatsApp message',
  path: 'whatsapp',
  job: 'deliver-whatsapp',
  job_of: sql.fragment`'deliver-whatsapp'`,
  quota: 'whatsapp',
  ladder: WHATSAPP_LADDER,
  rows: sql.fragment`whatsapp_messages`,
  accepted: null,
  events: sql.fragment`whatsapp_events`,
  message: sql.fragment`message_id`,
  by_recipient: false,
  given_up_as: null,
  sender_of: sql.fragment`null::text`,
  customers: sql.fragment`true`,
  broadcast: sql.fragment`null::uuid`,
  refused: sql.fragment`(status = 'failed' and accepted_at is null and not exists (
    select from whatsapp_events v
    where v.team_id = whatsapp_messages.team_id and v.message_id = whatsapp_messages.id and v.kind = 'unknown'))`,
  named: ({ team, uuids, texts }) => sql.fragment`
    select id from whatsapp_messages
    where team_id = ${team} and (id = ${anyUuid(uuids)} or provider_message_id = ${anyText(texts)})
    union all
    select m.id from whatsapp_requests r
    join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id
    where r.team_id = ${team} and (r.idempotency_key = ${anyText(texts)} or r.http_request_id = ${anyText(texts)})`,
  anywhere: ({ uuids, texts }) => sql.fragment`
    select team_id, id from whatsapp_messages where id = ${anyUuid(uuids)}
    union select team_id, id from whatsapp_messages where provider_message_id = ${anyText(texts)}
    union
    select m.team_id, m.id from whatsapp_requests r
    join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id
    where r.http_request_id = ${anyText(texts)}`,
  keyed: ({ team, texts }) => sql.fragment`
    select m.id from whatsapp_requests r
    join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id
    where r.team_id = ${team} and r.idempotency_key = ${anyText(texts)}`,
}

/** Every channel, in the order in which pages and sweeps take them. */
export const CHANNELS: readonly Channel[] = [EMAIL, WHATSAPP]

/** Events to a team's own servers: messages that are delivered as others are, and of no channel. */
export const WEBHOOK: Deliverable<'deliver-webhook'> = {
  name: 'webhook',
  noun: 'webhook',
  job: 'deliver-webhook',
  job_of: sql.fragment`'deliver-webhook'`,
  sender_of: sql.fragment`endpoint_id::text`,
  rows: sql.fragment`webhook_messages`,
  events: sql.fragment`webhook_events`,
  message: sql.fragment`message_id`,
  by_recipient: false,
  refused: sql.fragment`(status = 'failed')`,
  given_up_as: 'failed',
}

/** How the keys of the senders of webhooks begin: each endpoint is one. */
export const WEBHOOK_SENDERS = 'webhook:'

/** The queues of channels: email has two. */
export const CHANNEL_QUEUES: readonly Channel[] = [EMAIL, BROADCAST, WHATSAPP]

/** Every queue that delivers, with what it delivers: for whatever walks over queues. */
export const DELIVERIES: readonly Deliverable[] = [...CHANNEL_QUEUES, WEBHOOK]

/** How the key of a sender of broadcasts ends: it begins as that of the single emails' sender beside it. */
export const BULK = ':bulk'

/** What a sender of this key delivers: the keys of WhatsApp and webhooks tell it, email's begin with their provider. */
const deliveryOf = (key: string): Deliverable => {
  if (key.startsWith(WEBHOOK_SENDERS)) return WEBHOOK
  if (key.endsWith(BULK)) return BROADCAST
  return CHANNELS.find((channel) => key.startsWith(`${channel.name}:`)) ?? EMAIL
}

/** Whether a sender of this key sends what a queue delivers. */
export const sendsFor = ({ job }: Deliverable, key: string): boolean => deliveryOf(key).job === job

/** References as rows of a statement. */
export const refTuples = (refs: readonly DeliveryRef[]) =>
  sql.unnest(
    refs.map(({ team_id, id }) => [team_id, id]),
    ['uuid', 'uuid'],
  )
