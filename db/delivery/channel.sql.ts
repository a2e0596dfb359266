/**
 * What emails and WhatsApp messages share on their way out, as a value for each: the names of their tables and their
 * job. Owns what "unfinished" means to the queries over both. Must not know what a message says.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import type { JobName } from '../queue/jobs.ts'
import { SIGN_IN_TAG } from '../text/tags.ts'

/** A message, whatever its channel. */
export type DeliveryRef = { team_id: string; id: string }

/** Jobs that deliver a message. */
export type DeliveryJob = Extract<JobName, `deliver-${string}`>

export type Channel<J extends DeliveryJob = DeliveryJob> = {
  job: J
  /** What a person calls one. */
  noun: string
  rows: FragmentSqlToken
  events: FragmentSqlToken
  /** The column that names a message in its events. */
  message: FragmentSqlToken
  /** Whether a row is the team's own, and no sign-in mail of ours. */
  customers: FragmentSqlToken
  /** Whether a row was refused for good and surely never handed over: `requeue --force` takes it back. */
  refused: FragmentSqlToken
}

/**
 * Whether an email is the team's own, and no sign-in mail of ours. The API's have a request's id, so that tags are read
 * of the few others alone.
 */
export const isCustomers = sql.fragment`
  (http_request_id is not null or strpos(tags::text, ${JSON.stringify(SIGN_IN_TAG)}) = 0)`

export const EMAIL: Channel<'deliver-email'> = {
  job: 'deliver-email',
  noun: 'email',
  rows: sql.fragment`emails`,
  events: sql.fragment`email_events`,
  message: sql.fragment`email_id`,
  customers: isCustomers,
  refused: sql.fragment`(status = 'bounced' and provider_message_id is null and not exists (
    select from email_events v
    where v.team_id = emails.team_id and v.email_id = emails.id and v.kind in ('sent', 'delivered', 'unknown')))`,
}

export const WHATSAPP: Channel<'deliver-whatsapp'> = {
  job: 'deliver-whatsapp',
  noun: 'WhatsApp message',
  rows: sql.fragment`whatsapp_messages`,
  events: sql.fragment`whatsapp_events`,
  message: sql.fragment`message_id`,
  customers: sql.fragment`true`,
  refused: sql.fragment`(status = 'failed' and accepted_at is null and not exists (
    select from whatsapp_events v
    where v.team_id = whatsapp_messages.team_id and v.message_id = whatsapp_messages.id and v.kind = 'unknown'))`,
}

/** Whether a sender of this key sends for a channel: WhatsApp's begin with its name, email's with their provider's. */
export const sendsFor = ({ job }: Channel, key: string): boolean =>
  key.startsWith('whatsapp:') === (job === WHATSAPP.job)

/** References as rows of a statement. */
export const refTuples = (refs: readonly DeliveryRef[]) =>
  sql.unnest(
    refs.map(({ team_id, id }) => [team_id, id]),
    ['uuid', 'uuid'],
  )
