/** Queries that suppress contacts and end suppressions. Why an address is suppressed is in addresses.sql.ts. */
import { sql } from 'slonik'
import { boolean, type InferType, mixed, string } from 'yup'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { touchedAt } from '../contacts/contacts.sql.ts'
import type { SuppressionCause } from '../contacts/effect.ts'
import type { IdentityRef } from './addresses.sql.ts'

const REF = { team_id: 'uuid', identity: 'text' }

/** The suppression of a contact as one word, in the format of `suppression_copied`. */
const stored = sql.fragment`case when c.suppressed_softly then 'softly' else c.suppression end`

const lockedRow = row({
  team_id: string(),
  identity: string(),
  contact_id: string(),
  email: string(),
  suppression: string().nullable(),
  suppression_cause: mixed<SuppressionCause>().nullable(),
  suppressed_softly: boolean(),
  /** False if version 0.1.0 has changed the suppression since it was copied. */
  is_copied: boolean(),
})
export type LockedContact = InferType<typeof lockedRow>

const lockedColumns = sql.fragment`
  c.team_id, c.identity, c.id as contact_id, c.email, c.suppression, c.suppression_cause, c.suppressed_softly,
  c.suppression_copied is not distinct from ${stored} as is_copied`

/** Locks the contacts of these identities, by ID as everywhere, so that transactions can't deadlock. */
export const lockContacts = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.any(sql.prepared('lock_contacts', lockedRow)`
    select ${lockedColumns} from contacts c
    where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)})
    order by team_id, id for no key update`)

/** Locks contacts whose suppression version 0.1.0 has changed. Skips contacts that are already locked. */
export const contactsToCopy = (tx: Tx, limit: number) =>
  tx.any(sql.type(lockedRow)`
    select ${lockedColumns} from contacts c
    where (case when suppressed_softly then 'softly' else suppression end) is distinct from suppression_copied
    order by team_id, id limit ${limit} for no key update skip locked`)

/** `status` is from the event, and `suppression` from the current cause of its address. */
type SuppressedContact = {
  team_id: string
  contact_id: string
  status: 'bounced' | 'complained'
  suppression: 'bounced' | 'complained'
  softly: boolean
  cause: SuppressionCause
}

const SUPPRESSED = {
  ...{ team_id: 'uuid', contact_id: 'uuid', status: 'text', suppression: 'text' },
  ...{ softly: 'bool', cause: 'json' },
}

/** Suppresses locked contacts. A complaint is never replaced by a bounce. */
export const markSuppressed = (tx: Tx, contacts: readonly SuppressedContact[], now: Date) =>
  tx.query(sql.prepared('mark_suppressed', lockedRow)`
    update contacts c set
      status = r.status, suppression = r.suppression, suppressed_softly = r.softly, suppression_cause = r.cause,
      suppression_copied = case when r.softly then 'softly' else r.suppression end,
      status_before = case when c.status in ('subscribed', 'unsubscribed') then c.status else c.status_before end,
      updated_at = ${touchedAt(now)}
    from ${rowsOf('r', SUPPRESSED, contacts)}
    where c.team_id = r.team_id and c.id = r.contact_id and (c.status <> 'complained' or r.status = 'complained')
      and (c.status, c.suppression, c.suppressed_softly) is distinct from (r.status, r.suppression, r.softly)`)

/** Marks the suppressions of locked contacts as copied to suppressed_addresses. */
export const markCopied = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.query(sql.type(lockedRow)`
    update contacts c set suppression_copied = ${stored}
    where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)})`)

const releasedRow = row({
  team_id: string(),
  identity: string(),
  contact_id: string(),
  email: string(),
  has_listeners: boolean(),
})

/** Ends the suppression of locked contacts, and restores their status. @returns those that were suppressed. */
export const releaseContacts = (
  tx: Tx,
  refs: readonly IdentityRef[],
  { now, lifted }: { now: Date; lifted: Date | null },
) =>
  tx.any(sql.prepared('release_contacts', releasedRow)`
    update contacts c set
      status = case when status in ('bounced', 'complained') then coalesce(status_before, 'subscribed') else status end,
      suppression = null, suppression_cause = null, suppression_copied = null, suppressed_softly = false,
      status_before = null, lifted_at = coalesce(${lifted?.toISOString() ?? null}::timestamptz, lifted_at), updated_at = ${touchedAt(now)}
    where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)}) and suppression is not null
    returning c.team_id, c.identity, c.id as contact_id, c.email,
      ${hasListeners(sql.fragment`c.team_id`)} as has_listeners`)

const shownRow = row({
  suppression_cause: mixed<SuppressionCause>().nullable(),
  lifted_at: string().nullable(),
})

/** Returns the suppression in a contact's row, and when the contact or its address was last lifted, or null. */
export const suppressionOf = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(shownRow)`
    select c.suppression_cause, greatest(c.lifted_at, s.lifted_at) as lifted_at
    from contacts c left join suppressed_addresses s on s.team_id = c.team_id and s.identity = c.identity
    where c.team_id = ${teamId} and c.id = ${id}`)
