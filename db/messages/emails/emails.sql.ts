/**
 * Rows of emails: accepted emails (accepted_emails), their states (email_states), and both joined (the view
 * `emails`). Locking an email means locking its state. The accepted email is only changed behind that lock
 * (DECISIONS: Rows of emails).
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import { EMAIL_LADDER } from '../../channels/email.ts'
import { type AttachedFiles, attaching } from '../../content/files/files.sql.ts'
import { lastOf } from '../../postgres/joined.ts'
import type { Tx } from '../../postgres/pool.ts'
import { columnsOf, row, rowsOf } from '../../postgres/rows.ts'
import type { EmailFile } from './call.ts'

const stringMap = mixed<Record<string, string>>()

export const emailRow = row({
  team_id: string(),
  id: string(),
  domain_id: string(),
  template_id: string().nullable(),
  template_version_id: string().nullable(),
  variables: stringMap.nullable(),
  from_address: string(),
  /** All recipients: to, then cc, then bcc. */
  to_emails: array(string()),
  first_cc: number().nullable(),
  first_bcc: number().nullable(),
  subject: string(),
  /** The HTML of the send. Null if it is rendered from the template version. */
  html: string().nullable(),
  size_kb: number().nullable(),
  tags: array(string()),
  status: string().oneOf(EMAIL_LADDER),
  idempotency_key: string().nullable(),
  created_at: string(),
  requeued_at: string().nullable(),
  provider_message_id: string().nullable(),
  broadcast_id: string().nullable(),
  contact_id: string().nullable(),
  body_text: string().nullable(),
  headers: stringMap.nullable(),
  reply_to: string(),
  http_request_id: string().nullable(),
  pending_recipients: array(string()).nullable(),
  attachments: mixed<EmailFile[]>().nullable(),
  /** The times from the request. Null for most emails. */
  scheduled_at: string().nullable(),
  expires_at: string().nullable(),
  /** When it becomes due. Null unless it is scheduled. */
  due_at: string().nullable(),
  /** Our own email, which no team sees. */
  internal: boolean(),
})
export type EmailRow = InferType<typeof emailRow>
/** A row to store. `person`: the recipient's identity. `batch`: true for an item of a batch. Both are write-only. */
export type NewEmail = EmailRow & { person?: string | null; batch?: boolean }

/** All columns except the bodies. */
export const lightColumns = columnsOf(
  Object.keys(emailRow.fields).filter((column) => !['html', 'body_text', 'variables'].includes(column)),
)

const emailColumns = sql.fragment`${lightColumns}, html, body_text, variables`

/** The columns of a new accepted email and their types. */
const NEW_COLUMNS = {
  ...{ team_id: 'uuid', id: 'uuid', domain_id: 'uuid', template_id: 'uuid', template_version_id: 'uuid' },
  ...{ variables: 'json', from_address: 'text', to_emails: 'json', first_cc: 'int2', first_bcc: 'int2' },
  ...{ subject: 'text', html: 'text', tags: 'json', idempotency_key: 'text', created_at: 'timestamptz' },
  ...{ contact_id: 'uuid', broadcast_id: 'uuid', body_text: 'text', headers: 'json', reply_to: 'text' },
  ...{ http_request_id: 'text', attachments: 'json', internal: 'bool', person: 'text', batch: 'bool' },
} as const satisfies Partial<Record<keyof NewEmail, string>>

/** The additional columns of its initial state. */
const NEW_STATE = {
  ...{ status: 'text', size_kb: 'float8' },
  ...{ scheduled_at: 'timestamptz', expires_at: 'timestamptz', due_at: 'timestamptz' },
} as const satisfies Partial<Record<keyof EmailRow, string>>

const newColumns = Object.keys(NEW_COLUMNS)
const newNames = columnsOf(newColumns)
const stateNames = columnsOf(Object.keys(NEW_STATE))

const newValues = sql.join(
  newColumns.map((column) =>
    column === 'to_emails'
      ? sql.fragment`array(select json_array_elements_text(to_emails))`
      : column === 'batch'
        ? sql.fragment`coalesce(batch, false)`
        : sql.identifier([column]),
  ),
  sql.fragment`, `,
)

/** Stores the charge (limits.ts, buildCharges) and the accepted emails. The states follow. */
const accepting = (rows: readonly NewEmail[], charge: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`
    charged as (${charge}), item as materialized (
      select * from ${rowsOf('item', { ...NEW_COLUMNS, ...NEW_STATE }, rows)}
    ), accepted as (
      insert into accepted_emails (${newNames}) select ${newValues} from item
    )`

const insertStates = sql.fragment`
  insert into email_states (team_id, id, created_at, broadcast_id, contact_id, internal, ${stateNames})
  select team_id, id, created_at, broadcast_id, case when broadcast_id is not null then contact_id end, internal,
    ${stateNames}
  from item`

/** The parts of the statement that charge for new emails (limits.ts) and store their jobs. */
type With = { charge: FragmentSqlToken; jobs: FragmentSqlToken }

/** `due` is the number of jobs. With `last`, the statement also commits its transaction. */
export type Stores = With & { due: number; last: boolean }

/**
 * Stores new emails without attachments, in one statement. Fails with a division by zero if it doesn't store `due`
 * jobs.
 */
export const insertEmails = async (
  tx: Tx,
  rows: readonly NewEmail[],
  { charge, jobs, due, last }: Stores,
): Promise<void> =>
  void (await tx.query(sql.prepared(last ? lastOf('insert_emails') : 'insert_emails', object())`
    with ${accepting(rows, charge)}, stored as (${insertStates}), job as (${jobs})
    select 1 / (count(*) = ${due})::int from job`))

const countsRow = row({ jobs: number(), published: number() })

/** Does the same for emails of which some have attachments. @returns also how many files it published. */
export const insertEmailsWithFiles = (
  tx: Tx,
  rows: readonly NewEmail[],
  { charge, jobs, files }: With & { files: AttachedFiles },
) =>
  tx.one(sql.prepared('insert_emails_with_files', countsRow)`
    with ${accepting(rows, charge)}, stored as (${insertStates}), ${attaching(files)}, job as (${jobs})
    select (select count(*) from job)::int as jobs, (select count(*) from published)::int as published`)

const referenceRow = row({
  team_id: string(),
  kind: string().oneOf(['domain', 'pending', 'template', 'contact']),
  key: string(),
  id: string(),
  version_id: string().nullable(),
  slots: array(string()).nullable(),
})

export type Reference = { team_id: string; key: string }

const BY_NAME = { team_id: 'uuid', key: 'text' }
const BY_ID = { team_id: 'uuid', key: 'uuid' }

/** Finds the domains (verified or not), templates and contacts of emails, in one statement. */
export const emailReferences = (
  tx: Tx,
  wanted: { domains: readonly Reference[]; templates: readonly Reference[]; contacts: readonly Reference[] },
) =>
  tx.any(sql.prepared('email_references', referenceRow)`
    select d.team_id, case d.status when 'verified' then 'domain' else 'pending' end as kind, d.name as key, d.id, null::uuid as version_id, null::text[] as slots
    from ${rowsOf('w', BY_NAME, wanted.domains)}
      join domains d on d.team_id = w.team_id and d.name = w.key
    union all
    select t.team_id, 'template', t.id::text, t.id, v.id, v.slots
    from ${rowsOf('w', BY_ID, wanted.templates)}
      join templates t on t.team_id = w.team_id and t.id = w.key
      join template_versions v on v.team_id = t.team_id and v.id = t.version_id
    union all
    select c.team_id, 'contact', c.identity, c.id, null, null
    from ${rowsOf('w', BY_NAME, wanted.contacts)}
      join contacts c on c.team_id = w.team_id and c.identity = w.key`)

const storedKeyRow = row({
  team_id: string(),
  idempotency_key: string(),
  id: string(),
  from_address: string(),
})

export const emailsByKeys = (tx: Tx, keys: readonly Reference[]) =>
  tx.any(sql.prepared('emails_by_keys', storedKeyRow)`
    select e.team_id, e.idempotency_key, e.id, e.from_address
    from ${rowsOf('w', BY_NAME, keys)}
      join accepted_emails e on e.team_id = w.team_id and e.idempotency_key = w.key`)

export const emailById = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.prepared('email_by_id', emailRow)`
    select ${emailColumns} from emails where team_id = ${teamId} and id = ${id}`)

const addresseesRow = emailRow.pick(['to_emails', 'first_cc', 'first_bcc'])

export const addresseesOfEmail = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.prepared('addressees_of_email', addresseesRow)`
    select to_emails, first_cc, first_bcc from accepted_emails where team_id = ${teamId} and id = ${id}`)

const senderRow = emailRow.pick(['from_address'])

export const senderOfEmail = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(senderRow)`
    select from_address from accepted_emails where team_id = ${teamId} and id = ${id}`)

export type EmailRef = { team_id: string; email_id: string }

/** How references to emails travel, as rows of a statement. */
export const EMAIL_REF = { team_id: 'uuid', email_id: 'uuid' }

const bodiesRow = emailRow.pick(['html', 'body_text', 'variables'])

export const bodiesOfEmail = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.prepared('bodies_of_email', bodiesRow)`
    select html, body_text, variables from accepted_emails where team_id = ${teamId} and id = ${id}`)
