/**
 * Shows and removes the suppression of an address, or of all that match a filter. Removing it restores the contact's
 * status and resets the count of soft bounces. Each removal has an audit entry with the reason. DECISIONS:
 * Suppression.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { invalidField, RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { pick } from '../../validation/keys.ts'
import { assertSeen } from '../../validation/mark.ts'
import { type ContactRow, contactByIdentity } from '../contacts/contacts.sql.ts'
import { noContact } from '../contacts/edit.ts'
import type { SuppressionCause } from '../contacts/effect.ts'
import { endErasedSuppressions } from '../contacts/erased.ts'
import { TEXTS } from '../texts.ts'
import {
  nextSuppressed,
  type SuppressedAddress,
  type SuppressionFilter,
  suppressedAddress,
} from './addresses.sql.ts'
import { causeShown, statusBy } from './cause.ts'
import { release } from './suppress.ts'
import { lockContacts, suppressionOf } from './suppressions.sql.ts'

/** A contact with the suppression of its address, and the time of the last lift. */
export type ContactDetail = ContactRow & {
  suppression_cause: SuppressionCause | null
  suppression_lifted_at: string | null
}

export const shownSuppression = (stored: SuppressedAddress) =>
  pick(stored, 'email', 'cause', 'since', 'email_id', 'response')

export type ShownSuppression = ReturnType<typeof shownSuppression>

const LONGEST_REASON = 500

/** Returns a user's reason, trimmed. @throws RequestError bad_request if it is empty or too long. */
export function parseReason(text: string): string {
  const words = text.trim()
  if (words === '' || words.length > LONGEST_REASON)
    throw invalidField('reason', TEXTS.reasonLength, { most: LONGEST_REASON })
  return words
}

/** @throws RequestError contact_not_found. */
export async function showContact(tx: Tx, teamId: string, identity: string): Promise<ContactDetail> {
  const contact = await contactByIdentity(tx, teamId, identity)
  const found = contact && (await suppressionOf(tx, teamId, contact.id))
  if (!found) throw noContact()
  const address = await suppressedAddress(tx, teamId, identity)
  return {
    ...contact,
    suppression: address ? statusBy(address.cause) : contact.suppression,
    suppression_cause: address ? causeShown(address) : found.suppression_cause,
    suppression_lifted_at: found.lifted_at,
  }
}

const notSuppressed = (): RequestError => new RequestError('bad_request', TEXTS.notSuppressed)

/** @throws RequestError bad_request if it isn't suppressed. */
export async function showSuppression(tx: Tx, teamId: string, identity: string): Promise<ShownSuppression> {
  const found = await suppressedAddress(tx, teamId, identity)
  if (!found) throw notSuppressed()
  return shownSuppression(found)
}

/**
 * Returns a contact, or the suppression of an address. @throws RequestError bad_request if the address is neither.
 */
export async function showAddress(tx: Tx, teamId: string, identity: string) {
  if (await contactByIdentity(tx, teamId, identity)) return showContact(tx, teamId, identity)
  return showSuppression(tx, teamId, identity)
}

/** Identifies a suppression, to detect that it changed after a page showed it. */
export const suppressionMark = ({
  suppression,
  suppression_cause: cause,
}: Pick<ContactDetail, 'suppression' | 'suppression_cause'>): string => `${suppression} ${cause?.at ?? ''}`

/** Converts the suppression of an address without a contact into the fields of a contact. */
export const asContact = (
  shown: ShownSuppression & { report_id?: string | null },
): Pick<ContactDetail, 'email' | 'suppression' | 'suppression_cause'> => ({
  email: shown.email,
  suppression: statusBy(shown.cause),
  suppression_cause: causeShown({ report_id: null, ...shown }),
})

type Lifting = By & { secrets: Pick<Secrets, 'sign' | 'signatures'> }

/** Lifts the suppressions of addresses. @returns how many were suppressed. */
async function liftIdentities(
  at: Omit<Lifting, 'actor'>,
  teamId: string,
  identities: readonly string[],
  reason: string,
): Promise<number> {
  if (identities.length === 0) return 0
  const refs = identities.map((identity) => ({ team_id: teamId, identity }))
  await lockContacts(at.tx, refs)
  const released = await release(at.tx, refs, { now: at.now, lifted: at.now, detail: reason })
  const erased = await endErasedSuppressions(at, teamId, identities)
  const all = new Set([...released, ...erased.map((identity) => `${teamId}/${identity}`)])
  return all.size
}

/**
 * @param seen the mark of the suppression that a page showed, if any.
 * @returns the contact, or the previous suppression if the address isn't a contact.
 * @throws RequestError bad_request if it isn't suppressed or the reason is invalid; invalid_state if the suppression
 * has changed, so that lifting a bounce doesn't also lift a later complaint.
 */
export async function liftSuppression(
  by: Lifting,
  teamId: string,
  { identity, reason, seen = null }: { identity: string; reason: string; seen?: string | null },
): Promise<ContactDetail | ShownSuppression> {
  const words = parseReason(reason)
  await lockContacts(by.tx, [{ team_id: teamId, identity }])
  const before = await showAddress(by.tx, teamId, identity)
  const mark = 'suppression' in before ? suppressionMark(before) : suppressionMark(asContact(before))
  assertSeen(seen, mark, TEXTS.suppressedSince)
  if ((await liftIdentities(by, teamId, [identity], words)) === 0) throw notSuppressed()
  await record(by, { team_id: teamId, action: 'contact.lift', subject: before.email, detail: words })
  return 'suppression' in before ? showContact(by.tx, teamId, identity) : before
}

/** Lifts the suppression of an address, if it has one. @returns how many. @throws RequestError bad_request. */
export async function liftOne(by: Lifting, teamId: string, identity: string, reason: string) {
  const words = parseReason(reason)
  const lifted = await liftIdentities(by, teamId, [identity], words)
  if (lifted > 0)
    await record(by, { team_id: teamId, action: 'suppression.lift', subject: identity, detail: words })
  return lifted
}

const LIFT_BATCH = 500

/** Addresses that match the filter and were suppressed when they were counted. */
type BulkLift = {
  filter: Omit<SuppressionFilter, 'since' | 'until'> & {
    since?: string | undefined
    until?: string | undefined
  }
  reason: string
  most: number
}
type LiftCursor = { after: string }

/** Lifts the next batch of matching addresses. @returns how many, and where the next batch starts. */
export async function liftBatch(
  at: Omit<Lifting, 'actor'>,
  teamId: string,
  { filter: { since, until, ...filter }, reason, most }: BulkLift,
  { cursor, done }: { cursor: LiftCursor | null; done: number },
): Promise<{ lifted: number; cursor: LiftCursor | null }> {
  const limit = Math.min(LIFT_BATCH, most - done)
  if (limit <= 0) return { lifted: 0, cursor: null }
  const times = { since: since ? new Date(since) : undefined, until: until ? new Date(until) : undefined }
  const place = { after: cursor?.after ?? '', limit }
  const found = await nextSuppressed(at.tx, teamId, { ...filter, ...times }, place)
  const lifted = await liftIdentities(at, teamId, found, reason)
  const last = found.length < limit ? undefined : found.at(-1)
  return { lifted, cursor: last === undefined ? null : { after: last } }
}
