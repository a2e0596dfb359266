/** Queries for webhooks.ts: the data of webhooks, their endpoints, and storing the messages. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { queueFront } from '../../queue/fair-queue.sql.ts'
import { insertingJobs } from '../../queue/insert.sql.ts'
import { type DeliveryRef, REF } from '../channel.sql.ts'
import { isCustomers } from '../email.sql.ts'
import { WEBHOOK_SENDERS } from '../webhook.sql.ts'
import { ALL_TYPES } from './webhook-types.ts'

/** For how many days after it was disabled an endpoint's messages are stored, to be replayed. */
export const KEPT_DAYS = 7

/** True if messages are stored for an endpoint `w`. A disabled endpoint's are stored for the first days. */
const isServed = sql.fragment`(w.state = 'enabled' or w.disabled_at > now() - ${KEPT_DAYS} * interval '1 day')`

/** True if a team has an endpoint that receives messages. A column of statements that store events. */
export const hasListeners = (team: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  (exists (select from webhook_endpoints w where w.team_id = ${team} and ${isServed}))`

const endpointRow = row({
  team_id: string(),
  id: string(),
  types: array(string()),
  domain: string().nullable(),
  enabled: boolean(),
})

export const endpointsToNotify = (tx: Tx, teams: readonly string[]) =>
  tx.any(sql.prepared('endpoints_to_notify', endpointRow)`
    select team_id, id, types, domain, state = 'enabled' as enabled from webhook_endpoints w
    where team_id = any(${sql.array(teams, 'uuid')}) and ${isServed} order by team_id, id`)

const emailRow = row({
  id: string(),
  from_address: string(),
  to_emails: array(string()),
  first_cc: number().nullable(),
  first_bcc: number().nullable(),
  subject: string(),
  tags: array(string()),
  template_id: string().nullable(),
  idempotency_key: string().nullable(),
  broadcast_id: string().nullable(),
  requeued_at: string().nullable(),
  delays: number(),
})

/** Returns the webhook data of emails, without internal ones. `delays`: how often each was deferred or delayed. */
export const emailFacts = (tx: Tx, refs: readonly DeliveryRef[]) =>
  tx.any(sql.prepared('notified_emails', emailRow)`
    select e.id, e.from_address, e.to_emails, e.first_cc, e.first_bcc, e.subject, e.tags, e.template_id, e.idempotency_key, e.broadcast_id,
      (select requeued_at from email_states s where s.team_id = e.team_id and s.id = e.id), (
        select count(*) from email_events v
        where v.team_id = e.team_id and v.email_id = e.id and v.kind in ('deferred', 'delayed')) as delays
    from ${rowsOf('ref', REF, refs)}
      cross join lateral (select * from accepted_emails where team_id = ref.team_id and id = ref.id offset 0) e
    where ${isCustomers}`)

const contactRow = row({ id: string(), email: string(), status: string(), suppression: string().nullable() })

export const contactFacts = (tx: Tx, refs: readonly DeliveryRef[]) =>
  tx.any(sql.prepared('notified_contacts', contactRow)`
    select id, email, status, suppression from contacts
    where (team_id, id) in (select * from ${rowsOf('ref', REF, refs)})`)

export type NewWebhook = {
  team_id: string
  id: string
  endpoint_id: string
  event_id: string
  type: string
  subject_id: string | null
  body: string
  /** False if its endpoint is disabled. The message is then stored as failed. */
  enabled: boolean
}

/** The reason of messages that failed because their endpoint is disabled. */
export const DISABLED = 'disabled'

/** Records that messages failed because their endpoint is disabled. @param rows have team_id and id of each. */
export const recordDisabled = (rows: FragmentSqlToken) => sql.fragment`
  insert into webhook_events (team_id, message_id, event_key, kind, occurred_at, detail)
  select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', now(), ${DISABLED} from ${rows}`

/** The jobs of stored messages, as jobs.ts defines `deliver-webhook`, at the front of the queue. */
const jobsOfStored = sql.fragment`(
  select 'deliver-webhook' as name, id, ${queueFront('deliver-webhook')} as priority,
    jsonb_build_object('team_id', team_id, 'message_id', id, 'endpoint_id', endpoint_id) as data,
    ${WEBHOOK_SENDERS}::text || endpoint_id as group_id
  from stored where status = 'queued') f`

const WEBHOOK = {
  ...{ team_id: 'uuid', id: 'uuid', endpoint_id: 'uuid', event_id: 'uuid', type: 'text' },
  ...{ subject_id: 'uuid', body: 'text', status: 'text' },
}

/** Stores messages, with the database's time, and their jobs, in one statement. */
export async function insertWebhooks(tx: Tx, messages: readonly NewWebhook[]): Promise<void> {
  const items = messages.map((one) => ({ ...one, status: one.enabled ? 'queued' : 'failed' }))
  await tx.query(sql.prepared('insert_webhooks', object())`
    with stored as (
      insert into webhook_messages (
        team_id, id, endpoint_id, event_id, type, subject_id, body, status, created_at)
      select team_id, id, endpoint_id, event_id, type, subject_id, body, status, now()
      from ${rowsOf('m', WEBHOOK, items)}
      returning team_id, id, endpoint_id, status
    ), kept as (select team_id, id from stored where status = 'failed'
    ), noted as (${recordDisabled(sql.fragment`kept`)}
    )
    ${insertingJobs(jobsOfStored)}`)
}

export const wants = (types: readonly string[], type: string): boolean =>
  types.includes(ALL_TYPES) || types.includes(type)
