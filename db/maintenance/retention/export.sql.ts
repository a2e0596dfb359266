/** Queries for the export of the data that person.sql.ts finds. */
import { sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import {
  type IdRange,
  isAbout,
  isAboutDeleted,
  isEventNaming,
  isReportNaming,
  matchesSkip,
} from './person.sql.ts'

const emailRow = row({
  id: string(),
  created_at: string(),
  from: string(),
  to_emails: array(string()),
  first_cc: number().nullable(),
  first_bcc: number().nullable(),
  scheduled_at: string().nullable(),
  expires_at: string().nullable(),
  status: string(),
  broadcast_id: string().nullable(),
  template_id: string().nullable(),
  template_version_id: string().nullable(),
  subject: string(),
  html: string().nullable(),
  text: string().nullable(),
  variables: mixed<Record<string, string>>().nullable(),
  headers: mixed<Record<string, string>>().nullable(),
  reply_to: string(),
  tags: array(string()),
  idempotency_key: string().nullable(),
  attachments: mixed<readonly { filename: string; content_type: string; size: number }[]>().nullable(),
  internal: boolean(),
})
export type ExportedRow = InferType<typeof emailRow>

export const emailsToShow = (tx: Tx, teamId: string, ids: readonly string[]) =>
  tx.any(sql.type(emailRow)`
    select id, created_at, from_address as "from", to_emails, first_cc, first_bcc, scheduled_at, expires_at, status,
      broadcast_id, template_id, template_version_id, subject, html, body_text as text, variables, headers, reply_to,
      tags, idempotency_key, attachments, internal
    from emails where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) order by id`)

const eventRow = row({
  email_id: string(),
  kind: string(),
  occurred_at: string(),
  recipient: string().nullable(),
  detail: string(),
  /** True if it contains the address. */
  names: boolean(),
})

export const eventsToShow = (tx: Tx, teamId: string, ids: readonly string[], pattern: string) =>
  tx.any(sql.type(eventRow)`
    select email_id, kind, occurred_at, recipient, detail, ${isEventNaming(pattern)} as names from email_events v
    where team_id = ${teamId} and email_id = any(${sql.array(ids, 'uuid')})
    order by email_id, occurred_at, event_key`)

const webhookRow = row({
  subject_id: string(),
  event_id: string(),
  endpoint_id: string(),
  type: string(),
  status: string(),
  created_at: string(),
  /** Whom it is about, where it is about one recipient of several. */
  recipient: string().nullable(),
})

/** Returns the webhook messages about these emails or contacts, without their bodies, which name other recipients. */
export const webhooksToShow = (tx: Tx, teamId: string, subjects: readonly string[]) =>
  tx.any(sql.type(webhookRow)`
    select subject_id, event_id, endpoint_id, type, status, created_at, body::json -> 'data' ->> 'recipient' as recipient
    from webhook_messages
    where ${isAbout(teamId, subjects)} order by id`)

const webhookStretchRow = row({ last: string().nullable(), found: mixed<InferType<typeof webhookRow>[]>() })

/** Returns the webhook messages in a range that are about deleted subjects and contain the address. */
export const webhooksAboutDeleted = (tx: Tx, teamId: string, pattern: string, { after, limit }: IdRange) =>
  tx.one(sql.type(webhookStretchRow)`
    with stretch as materialized (
      select * from webhook_messages where team_id = ${teamId} and id > ${after} order by id limit ${limit}
    )
    select (select max(id::text) from stretch) as last, coalesce((
      select json_agg(json_build_object(
        'subject_id', subject_id, 'event_id', event_id, 'endpoint_id', endpoint_id, 'type', type, 'status', status,
        'created_at', to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'recipient', body::json -> 'data' ->> 'recipient') order by id)
      from stretch w where ${isAboutDeleted(pattern)}), '[]') as found`)

const skipRow = row({
  broadcast_id: string(),
  contact_id: string(),
  email: string(),
  reason: string(),
  detail: string(),
  at: string(),
})

/** Returns the broadcasts that skipped the address, with the reason. */
export const skipsToShow = (tx: Tx, teamId: string, spellings: readonly string[]) =>
  tx.any(sql.type(skipRow)`
    select broadcast_id, contact_id, email, reason, detail, at from broadcast_skips
    where ${matchesSkip(teamId, spellings)} order by at, broadcast_id`)

const reportRow = row({ id: string(), provider: string(), received_at: string(), bytes: number() })

const stretchRow = row({ last: string().nullable(), found: mixed<InferType<typeof reportRow>[]>() })

/**
 * Returns the reports in a range that contain the address, without their content, which may name other recipients.
 */
export const reportsToShow = (tx: Tx, teamId: string, pattern: string, { after, limit }: IdRange) =>
  tx.one(sql.type(stretchRow)`
    with stretch as (
      select id, provider, received_at, state, team_ids, body from reports where id > ${after} order by id limit ${limit}
    )
    select (select max(id::text) from stretch) as last, coalesce((
      select json_agg(json_build_object(
        'id', id, 'provider', provider, 'received_at', to_char(received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'bytes', length(body)) order by id)
      from stretch where ${isReportNaming(teamId, pattern)}), '[]') as found`)
