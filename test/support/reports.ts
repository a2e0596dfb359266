/** Helpers of tests about reports: state that the API doesn't show, and initial rows. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { mixed, number, string } from 'yup'
import { type EmailRow, insertEmails } from '../../db/messages/emails/emails.sql.ts'
import { countRow, row } from '../../db/postgres/rows.ts'
import { addressIdentity } from '../../db/validation/address.ts'
import type { Service } from './service.ts'

type Place = Pick<Service, 'database'>

const reportRow = row({
  id: string(),
  provider: string(),
  event_key: string(),
  body: mixed<Buffer>(),
  state: string(),
  reason: string().nullable(),
  received_at: string(),
})

/** Returns every stored report, oldest first. */
export const storedReports = async ({ database }: Place) =>
  await database.any(
    sql.type(
      reportRow,
    )`select id, provider, event_key, body, state, reason, received_at from reports order by id`,
  )

const jobRow = row({ data: mixed<Record<string, unknown>>() })

/** Returns the payloads of a queue's waiting and running jobs. */
export const jobsIn = async ({ database }: Place, queue: string) =>
  (
    await database.any(
      sql.type(jobRow)`select data from pgboss.job where name = ${queue} and state <= 'active' order by id`,
    )
  ).map(({ data }) => data)

/** Makes the waiting jobs of a queue due at once. */
export const setDue = async ({ database }: Place, queue: string): Promise<void> => {
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() where name = ${queue} and state < 'active'`)
}

/** Stores a team without a domain, because generating a key pair is slow. */
export async function storeTeam({ database }: Place): Promise<string> {
  const id = uuidv7()
  await database.query(sql.unsafe`insert into teams (id, name, created_at) values (${id}, 'A team', now())`)
  return id
}

/** Stores a contact's row directly. */
export async function storeContact(
  { database }: Place,
  teamId: string,
  email: string,
  status: 'subscribed' | 'unsubscribed' = 'subscribed',
): Promise<string> {
  const id = uuidv7()
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    values (${teamId}, ${id}, ${email}, ${addressIdentity(email)}, ${status}, '{}', '{}', now(), now())`)
  return id
}

/** Returns a contact's state. @throws Error if the contact doesn't exist. */
export const contactState = async ({ database }: Place, teamId: string, email: string) =>
  await database.one(sql.type(row({ status: string(), suppression: string().nullable() }))`
    select status, suppression from contacts where team_id = ${teamId} and identity = ${addressIdentity(email)}`)

/** Unsubscribes all contacts of a team. */
export const unsubscribe = async ({ database }: Place, teamId: string): Promise<void> => {
  await database.query(sql.unsafe`update contacts set status = 'unsubscribed' where team_id = ${teamId}`)
}

/** Builds the stored row of a queued email. Its domain and team needn't exist. */
export const anEmailRow = (changes: Partial<EmailRow> = {}): EmailRow => ({
  team_id: uuidv7(),
  id: uuidv7(),
  domain_id: uuidv7(),
  template_id: null,
  template_version_id: null,
  variables: null,
  from_address: 'hello@example.com',
  to_emails: ['someone@example.org'],
  first_cc: null,
  first_bcc: null,
  subject: 'Hello',
  html: '<p>Hello</p>',
  size_kb: 0.01,
  tags: [],
  status: 'queued',
  idempotency_key: null,
  created_at: new Date().toISOString(),
  requeued_at: null,
  provider_message_id: null,
  broadcast_id: null,
  contact_id: null,
  body_text: null,
  scheduled_at: null,
  expires_at: null,
  due_at: null,
  headers: null,
  reply_to: '',
  http_request_id: null,
  pending_recipients: null,
  attachments: null,
  internal: false,
  ...changes,
})

/** Stores queued emails without jobs, one for each list of recipients. @returns their ids. */
export async function storeEmails(
  { database }: Place,
  teamId: string,
  recipients: readonly (readonly string[])[],
  changes: Partial<EmailRow> = {},
): Promise<string[]> {
  const rows = recipients.map((to) => anEmailRow({ team_id: teamId, to_emails: [...to], ...changes }))
  await insertEmails(database, rows, {
    ...{ charge: sql.fragment`select 1`, jobs: sql.fragment`select 1`, due: 1, last: false },
  })
  return rows.map(({ id }) => id)
}

export const emailStatus = async ({ database }: Place, id: string): Promise<string> =>
  (await database.one(sql.type(row({ status: string() }))`select status from emails where id = ${id}`)).status

/** Sets an email's ID at the provider. */
export const setProviderId = async ({ database }: Place, id: string, providerId: string): Promise<void> => {
  await database.query(sql.unsafe`
    update email_states set provider_message_id = ${providerId} where id = ${id}`)
}

/** Sets the recipients of an email that still need an attempt. */
export const setPending = async ({ database }: Place, id: string, pending: string[]): Promise<void> => {
  await database.query(sql.unsafe`
    update email_states set pending_recipients = ${sql.array(pending, 'text')} where id = ${id}`)
}

const eventRow = row({
  kind: string(),
  recipient: string().nullable(),
  detail: string(),
  occurred_at: string(),
})

/** Returns an email's events, oldest first. */
export const eventsOf = async ({ database }: Place, id: string) =>
  await database.any(sql.type(eventRow)`
    select kind, recipient, detail, occurred_at from email_events
    where email_id = ${id} order by occurred_at, event_key`)

/** Returns the jobs of reports, in the order of the reports. */
export const ingestJobs = async ({ database }: Place) =>
  await database.any(sql.type(row({ state: string(), attempts: number() }))`
    select state::text, retry_count as attempts from pgboss.job where name = 'ingest-report' order by id`)

/** Makes the database reject every event of an email with this detail. */
export const refuseEvents = async ({ database }: Place, detail: string): Promise<void> => {
  await database.query(sql.unsafe`
    create function refuse_event() returns trigger language plpgsql
    as 'begin raise exception ''refused''; end'`)
  await database.query(sql.unsafe`
    create trigger refuse_event before insert on email_events for each row
    when (new.detail = ${sql.literalValue(detail)}) execute function refuse_event()`)
}

/** Blocks the worker that settles the report with the event key `held`, until `open`. */
export async function holdReport({ database }: Place) {
  await database.query(sql.unsafe`
    create function hold_report() returns trigger language plpgsql
    as 'begin perform pg_advisory_xact_lock(42); return new; end'`)
  await database.query(sql.unsafe`
    create trigger hold_report before update on reports for each row
    when (new.event_key = 'held') execute function hold_report()`)
  const held = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const holding = database.transaction(async (tx) => {
    await tx.query(sql.unsafe`select pg_advisory_xact_lock(42)`)
    held.resolve()
    await open.promise
  })
  await held.promise
  return {
    isWaiting: async (): Promise<boolean> =>
      (
        await database.one(sql.type(countRow)`
          select count(*) as count from pg_locks join pg_database d on d.oid = database
          where d.datname = current_database() and locktype = 'advisory' and objid = 42 and not granted`)
      ).count > 0,
    open: async (): Promise<void> => {
      open.resolve()
      await holding
    },
  }
}

/** Returns how many of the waiting jobs of reports are deferred. */
export const tries = async ({ database }: Place): Promise<number> =>
  (
    await database.one(sql.type(countRow)`
      select count(*) as count from pgboss.job
      where name = 'ingest-report' and state < 'active' and start_after > created_on`)
  ).count

/**
 * Records the retries of finished jobs of reports from now on. @returns a function that counts the jobs with
 * a retry.
 */
export async function watchRetries({ database }: Place): Promise<() => Promise<number>> {
  await database.query(sql.unsafe`create table done_jobs (attempt int)`)
  await database.query(sql.unsafe`
    create function note_done() returns trigger language plpgsql as
    'begin insert into done_jobs values (old.retry_count); return null; end'`)
  await database.query(sql.unsafe`
    create trigger note_done after delete on pgboss.job for each row
    when (old.name = 'ingest-report') execute function note_done()`)
  return async () =>
    (await database.one(sql.type(countRow)`select count(*) as count from done_jobs where attempt > 0`)).count
}

/** Marks the first `count` waiting jobs of reports as if two workers had died with them. */
export const dieWith = async ({ database }: Place, count: number): Promise<void> => {
  await database.query(sql.unsafe`
    update pgboss.job set retry_count = 2 where id in (
      select id from pgboss.job where name = 'ingest-report' and state < 'active' order by id limit ${count})`)
}

/** Deletes the jobs of rows, like a queue that loses them. */
export const loseJobs = async ({ database }: Place, ids: readonly string[]): Promise<void> => {
  await database.query(sql.unsafe`delete from pgboss.job where id = any(${sql.array(ids, 'uuid')})`)
}
