/**
 * Creates, changes and deletes single contacts in the caller's transaction. The contact quota is exact, because
 * adding or removing a contact locks the team's account first. DECISIONS: Bulk upsert.
 */

import { type Caller, record } from '../../accounts/audit/record.ts'
import { buildCharge, left, lockAccount, saveAccount } from '../../accounts/teams/limits.ts'
import { LimitReached } from '../../accounts/teams/rate-limit.ts'
import { invalidField, RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Secrets } from '../../process/secrets.ts'
import { parseAddress, parsedAddress } from '../../validation/address.ts'
import { TEXTS } from '../texts.ts'
import {
  type ContactChange,
  type ContactRow,
  contactByIdentity,
  contactExists,
  deleteContact,
  insertContact,
  lockContact,
  updateContact,
} from './contacts.sql.ts'
import { initialStates, NEW_CONTACT } from './erased.ts'
import { claimFault, claimsStatus, type StatusClaims } from './fields.ts'
import { holdTopics } from './topics.sql.ts'

export const noContact = (): RequestError => new RequestError('contact_not_found', TEXTS.noContact)

export const contactsReached = (limit: number | null): RequestError =>
  requestError('quota_exceeded', TEXTS.contactQuota, { limit: limit?.toLocaleString('en') ?? 'no' })

/** Returns the identity of an email address in a path. @throws RequestError contact_not_found if it isn't one. */
export function contactIdentity(email: string): string {
  const parsed = parseAddress(email)
  if (parsed === null) throw noContact()
  return parsed.identity
}

/** Returns the IDs in lower case, without duplicates, in the given order. */
export const distinctTopics = (ids: readonly string[]): string[] => [
  ...new Set(ids.map((id) => id.toLowerCase())),
]

/** @throws RequestError bad_request for the first topic that the team doesn't have. */
async function existingTopics(tx: Tx, teamId: string, ids: readonly string[]): Promise<string[]> {
  const wanted = distinctTopics(ids)
  if (wanted.length === 0) return wanted
  const known = await holdTopics(tx, teamId, wanted)
  const unknown = wanted.find((id) => !known.has(id))
  if (unknown !== undefined) throw invalidField('topic_ids', TEXTS.noTopicOfField, { id: unknown })
  return wanted
}

/** @throws RequestError bad_request if the body claims another status than the contact has. */
function checkClaims(claims: StatusClaims, status: ContactRow['status']): void {
  const fault = claimFault(claims, status)
  if (fault) throw new RequestError('bad_request', fault)
}

/**
 * @throws RequestError in this order: bad_request for unknown topics, contact_exists, bad_request for a claimed
 * status, quota_exceeded.
 */
export async function createContact(
  { secrets, ...by }: Caller & { secrets: Pick<Secrets, 'signatures'> },
  teamId: string,
  given: StatusClaims & {
    email: string
    properties?: Record<string, string> | undefined
    topic_ids?: string[] | undefined
  },
): Promise<ContactRow> {
  const { tx } = by
  const { address: email, identity } = parsedAddress(given.email)
  const account = await lockAccount(tx, teamId)
  const topic_ids = await existingTopics(tx, teamId, given.topic_ids ?? [])
  if (await contactExists(tx, teamId, identity)) {
    throw new RequestError('contact_exists', TEXTS.contactExists)
  }
  const begun = await initialStates(tx, secrets, teamId, [identity])
  const beginning = begun.get(identity) ?? NEW_CONTACT
  checkClaims(given, beginning.status)
  if (left(account.limits.contacts, account.used.contacts) < 1)
    throw new LimitReached(account, contactsReached(account.limits.contacts))
  account.used.contacts += 1
  const contact = {
    id: idNow(),
    email,
    identity,
    properties: given.properties ?? {},
    topic_ids: topic_ids.filter((topic) => !beginning.left_topic_ids.includes(topic)),
    ...beginning,
  }
  const at = { now: account.now, charge: buildCharge(teamId, account) }
  const created = await insertContact(tx, teamId, contact, at)
  await record(by, { team_id: teamId, action: 'contact.create', subject: email })
  return created
}

/**
 * Locks a contact whose change depends on its current values. @param ids topics that it may get. They and its current
 * topics are locked first, as when a topic is deleted.
 * @throws RequestError contact_not_found.
 */
export async function contactToChange(tx: Tx, teamId: string, identity: string, ids: readonly string[]) {
  const before = await contactByIdentity(tx, teamId, identity)
  await holdTopics(tx, teamId, distinctTopics([...ids, ...(before?.topic_ids ?? [])]))
  const contact = await lockContact(tx, teamId, identity)
  if (contact) return contact
  throw noContact()
}

/** @throws RequestError bad_request for unknown topics or a wrong claimed status, contact_not_found. */
export async function changeContact(
  by: Caller,
  teamId: string,
  identity: string,
  { properties, topic_ids: ids, ...claims }: ContactChange & StatusClaims,
): Promise<ContactRow> {
  const { tx, now } = by
  if (claimsStatus(claims)) {
    const known = await contactByIdentity(tx, teamId, identity)
    if (!known) throw noContact()
    checkClaims(claims, known.status)
  }
  const topic_ids = ids === undefined ? undefined : await existingTopics(tx, teamId, ids)
  const contact = await updateContact(tx, teamId, { identity, properties, topic_ids }, now)
  if (!contact) throw noContact()
  await record(by, { team_id: teamId, action: 'contact.change', subject: contact.email })
  return contact
}

/** Deletes a contact and frees its place in the quota. @throws RequestError contact_not_found. */
export async function removeContact(by: Caller, teamId: string, identity: string): Promise<void> {
  const { tx } = by
  const account = await lockAccount(tx, teamId)
  const email = await deleteContact(tx, teamId, identity)
  if (email === null) throw noContact()
  account.used.contacts = Math.max(0, account.used.contacts - 1)
  await saveAccount(tx, teamId, account)
  await record(by, { team_id: teamId, action: 'contact.delete', subject: email })
}
