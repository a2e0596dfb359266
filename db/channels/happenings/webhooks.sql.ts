/** The statements behind webhooks.ts: what a webhook says of its subject, its endpoints, and the messages stored. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { insertFreshJobs } from '../../queue/jobs.sql.ts'
import { SIGN_IN_TAG } from '../../text/tags.ts'
import { WEBHOOK_SENDERS } from '../webhook.sql.ts'
import { ALL_TYPES } from './webhook-types.ts'

/** Whether a team has an endpoint that gets anything. */
export const hasEndpoint = (team: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  exists (select from webhook_endpoints w where w.team_id = ${team} and w.state = 'enabled')`

export type Ref = { team_id: string; id: string }

/** References as rows of a statement. */
export const tuplesOf = (refs: readonly Ref[]) =>
  sql.unnest(
    refs.map(({ team_id, id }) => [team_id, id]),
    ['uuid', 'uuid'],
  )

const endpointRow = object({
  team_id: string().defined(),
  id: string().defined(),
  types: array(string().defined()).defined(),
  domain_id: string().defined().nullable(),
})

/** The endpoints of these teams that get anything. */
export async function endpointsToNotify(tx: Tx, teams: readonly string[]) {
  return tx.any(sql.prepared('endpoints_to_notify', endpointRow)`
    select team_id, id, types, domain_id from webhook_endpoints
    where team_id = any(${sql.array([...teams], 'uuid')}) and state = 'enabled' order by team_id, id`)
}

const emailRow = object({
  id: string().defined(),
  domain_id: string().defined(),
  from_address: string().defined(),
  to_emails: array(string().defined()).defined(),
  subject: string().defined(),
  tags: array(string().defined()).defined(),
  template_id: string().defined().nullable(),
  idempotency_key: string().defined().nullable(),
  broadcast_id: string().defined().nullable(),
  delays: number().defined(),
})

/** What webhooks say of emails, sign-in mail of ours left out; `delays`: how often each was put off or delayed. */
export async function emailFacts(tx: Tx, refs: readonly Ref[]) {
  return tx.any(sql.prepared('notified_emails', emailRow)`
    select e.id, e.domain_id, e.from_address, e.to_emails, e.subject, e.tags, e.template_id, e.idempotency_key,
      e.broadcast_id, (
        select count(*) from email_events v
        where v.team_id = e.team_id and v.email_id = e.id and v.kind in ('deferred', 'delayed')) as delays
    from ${tuplesOf(refs)} as ref (team_id, id)
      cross join lateral (select * from accepted_emails where team_id = ref.team_id and id = ref.id offset 0) e
    where e.http_request_id is not null or strpos(e.tags::text, ${JSON.stringify(SIGN_IN_TAG)}) = 0`)
}

const contactRow = object({
  id: string().defined(),
  email: string().defined(),
  status: string().defined(),
  suppression: string().defined().nullable(),
})

/** What webhooks say of contacts, as they are now. */
export async function contactFacts(tx: Tx, refs: readonly Ref[]) {
  return tx.any(sql.prepared('notified_contacts', contactRow)`
    select id, email, status, suppression from contacts
    where (team_id, id) in (select * from ${tuplesOf(refs)} as ref (team_id, id))`)
}

const domainRow = object({ team_id: string().defined(), id: string().defined(), name: string().defined() })

/** The domains of these names that teams have. */
export async function domainsByName(tx: Tx, names: readonly { team_id: string; name: string }[]) {
  const tuples = sql.unnest(
    names.map(({ team_id, name }) => [team_id, name]),
    ['uuid', 'text'],
  )
  return tx.any(sql.prepared('domains_by_name', domainRow)`
    select team_id, id, name from domains
    where (team_id, name) in (select * from ${tuples} as n (team_id, name))`)
}

/** A message to one endpoint. */
export type NewWebhook = {
  team_id: string
  id: string
  endpoint_id: string
  event_id: string
  type: string
  subject_id: string | null
  body: string
}

/** The payloads and groups of their jobs, as jobs.ts has them for `deliver-webhook`. */
const jobsOfStored = sql.fragment`(
  select id, jsonb_build_object('team_id', team_id, 'message_id', id, 'endpoint_id', endpoint_id) as data,
    ${WEBHOOK_SENDERS}::text || endpoint_id as group_id
  from stored)`

/** Stores messages, created now by the database's time, and their jobs: in one statement. */
export async function insertWebhooks(tx: Tx, messages: readonly NewWebhook[]): Promise<void> {
  const tuples = messages.map((one) => [
    ...[one.team_id, one.id, one.endpoint_id, one.event_id, one.type],
    ...[one.subject_id, one.body],
  ])
  await tx.query(sql.prepared('insert_webhooks', object())`
    with stored as (
      insert into webhook_messages (
        team_id, id, endpoint_id, event_id, type, subject_id, body, status, created_at)
      select team_id, id, endpoint_id, event_id, type, subject_id, body, 'queued', now()
      from ${sql.unnest(tuples, ['uuid', 'uuid', 'uuid', 'uuid', 'text', 'uuid', 'text'])}
        as m (team_id, id, endpoint_id, event_id, type, subject_id, body)
      returning team_id, id, endpoint_id
    )
    ${insertFreshJobs('deliver-webhook', jobsOfStored)}`)
}

/** Whether an endpoint with these types gets this one. */
export const wants = (types: readonly string[], type: string): boolean =>
  types.includes(ALL_TYPES) || types.includes(type)
