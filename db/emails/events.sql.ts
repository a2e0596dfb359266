/** Rows of email_events: what happened to emails. */
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { ContactEffect } from '../contacts/effect.ts'
import type { Tx } from '../postgres/pool.ts'
import { digest16 } from '../text/digest.ts'
import type { EmailRef } from './emails.sql.ts'
import type { EmailEventKind } from './status.ts'

/** One thing that happened to an email, or to one recipient of it. */
export type EmailEvent = EmailRef & {
  /** What makes a repeat of it fall away: the provider's event id, a hash, or the attempt. */
  event_key: string
  kind: EmailEventKind
  recipient: string | null
  occurred_at: Date
  /** The provider's words. */
  detail: string
  /** What it means for the recipient's contact; nothing when absent. */
  effect?: ContactEffect
  /** The stored report that tells of it, if one does. */
  report_id?: string | undefined
  /** That contact, if there is one. */
  contact_id?: string | undefined
}

/** Only what counts for or against a run of soft bounces is looked up again. */
const counted = ({ contact_id, effect }: EmailEvent): [string | null, string | null] =>
  contact_id !== undefined && (effect === 'soft' || effect === 'delivered')
    ? [contact_id, effect]
    : [null, null]

const freshEvent = object({
  team_id: string().defined(),
  email_id: string().defined(),
  digest: string().defined(),
})
const nameOf = ({ team_id, email_id }: EmailRef, digest: string): string => `${team_id}/${email_id}/${digest}`

const EVENT = ['uuid', 'uuid', 'text', 'text', 'text', 'timestamptz', 'text', 'uuid', 'text']

/** Stores events in one statement. @returns those that were not stored before. */
export async function insertEmailEvents<E extends EmailEvent>(tx: Tx, events: readonly E[]): Promise<E[]> {
  const tuples = events.map((event) => [
    event.team_id,
    event.email_id,
    digest16(event.event_key),
    event.kind,
    event.recipient,
    event.occurred_at.toISOString(),
    event.detail,
    ...counted(event),
  ])
  const stored = await tx.any(sql.prepared('insert_email_events', freshEvent)`
    insert into email_events (
      team_id, email_id, event_key, kind, recipient, occurred_at, detail, contact_id, effect)
    select e.team_id, e.email_id, decode(e.event_key, 'hex'), e.kind, e.recipient, e.occurred_at, e.detail,
      e.contact_id, e.effect
    from ${sql.unnest(tuples, EVENT)}
      as e (team_id, email_id, event_key, kind, recipient, occurred_at, detail, contact_id, effect)
    on conflict do nothing
    returning team_id, email_id, encode(event_key, 'hex') as digest`)
  const fresh = new Set(stored.map((row) => nameOf(row, row.digest)))
  return events.filter((event) => fresh.has(nameOf(event, digest16(event.event_key))))
}

const eventRow = object({
  kind: string().defined(),
  recipient: string().defined().nullable(),
  occurred_at: string().defined(),
  detail: string().defined(),
})
export type EmailEventRow = InferType<typeof eventRow>

/** The email's timeline, oldest first. */
export async function eventsOfEmail(tx: Tx, teamId: string, id: string): Promise<readonly EmailEventRow[]> {
  return tx.any(sql.type(eventRow)`
    select kind, recipient, occurred_at, detail from email_events
    where team_id = ${teamId} and email_id = ${id} order by occurred_at, kind = 'gave_up', event_key`)
}
