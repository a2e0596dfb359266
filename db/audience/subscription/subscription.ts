/**
 * Unsubscribes and resubscribes contacts in the caller's transaction. A suppression outlives an unsubscribe. Manual
 * changes and left topics are in the audit log. The choice of a recipient without a contact applies to a contact
 * created later, until it is resubscribed. DECISIONS: Unsubscribe.
 */

import { type Caller, record } from '../../accounts/audit/record.ts'
import { lockAccount } from '../../accounts/teams/limits.ts'
import { requestError } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { publishContacts } from '../contacts/changes.ts'
import {
  type ContactRow,
  lockContact,
  unsubscribeContacts,
  updateContactStatus,
} from '../contacts/contacts.sql.ts'
import { distinctTopics, noContact } from '../contacts/edit.ts'
import { storeOptOut } from '../contacts/erased.sql.ts'
import { clearOptOuts, erasureHash } from '../contacts/erased.ts'
import { statusBy } from '../suppressions/cause.ts'
import { findSuppressed } from '../suppressions/suppressed.ts'
import { TEXTS } from '../texts.ts'
import { type ContactTopics, leaveWhileSuppressed, topicsOfContact, writeTopics } from './subscription.sql.ts'

type Leaver = 'recipient' | 'api'

async function locked(tx: Tx, teamId: string, identity: string): Promise<ContactRow> {
  const contact = await lockContact(tx, teamId, identity)
  if (!contact) throw noContact()
  return contact
}

async function become(by: Caller, teamId: string, { id }: ContactRow, status: 'subscribed' | 'unsubscribed') {
  const { tx, now } = by
  const { has_listeners, ...contact } = await updateContactStatus(tx, teamId, { id, status }, now)
  const kind = status === 'subscribed' ? 'resubscribed' : 'unsubscribed'
  await publishContacts(tx, [
    { team_id: teamId, contact_id: id, has_listeners, kind, occurred_at: now, detail: '' },
  ])
  const verb = status === 'subscribed' ? 'resubscribe' : 'unsubscribe'
  await record(by, { team_id: teamId, action: `contact.${verb}`, subject: contact.email })
  return contact
}

export async function unsubscribe(by: Caller, teamId: string, identity: string): Promise<ContactRow> {
  const contact = await locked(by.tx, teamId, identity)
  return contact.status === 'unsubscribed' ? contact : become(by, teamId, contact, 'unsubscribed')
}

/** Unsubscribes contacts of an import that have no consent. */
export async function unsubscribeAll({ tx, now }: At, teamId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const changed = await unsubscribeContacts(tx, teamId, [...new Set(ids)], now)
  await publishContacts(
    tx,
    changed.map(({ id, has_listeners }) => ({
      ...{ team_id: teamId, contact_id: id, has_listeners },
      ...{ kind: 'unsubscribed' as const, occurred_at: now, detail: '' },
    })),
  )
}

/**
 * @param chosen topics that the recipient has just chosen. @throws RequestError contact_not_found,
 * contact_suppressed.
 */
export async function resubscribe(
  { secrets, ...by }: Caller & { secrets: Pick<Secrets, 'sign' | 'signatures'> },
  teamId: string,
  identity: string,
  chosen: readonly string[] = [],
): Promise<ContactRow> {
  const contact = await locked(by.tx, teamId, identity)
  if (contact.status !== 'subscribed')
    await assertNotSuppressed(by.tx, secrets, teamId, { ...contact, identity })
  await clearOptOuts({ ...by, secrets }, teamId, identity, { chosen })
  return contact.status === 'subscribed' ? contact : become(by, teamId, contact, 'subscribed')
}

async function assertNotSuppressed(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'>,
  teamId: string,
  { identity, suppression }: Pick<ContactRow, 'suppression'> & { identity: string },
): Promise<void> {
  const found = suppression === null && (await findSuppressed(tx, secrets, teamId, [identity])).get(identity)
  const why = suppression ?? (found ? statusBy(found.cause) : null)
  if (why !== null) throw requestError('contact_suppressed', TEXTS.cannotResubscribe, { status: why })
}

/**
 * Stores the topics that a contact keeps, and records that it left the others. The audit log only contains the
 * contact's ID, because entries outlive an erasure.
 */
export async function keepTopics(
  { tx, now }: At,
  teamId: string,
  held: ContactTopics,
  { topic_ids, by }: { topic_ids: readonly string[]; by: Leaver },
): Promise<void> {
  const { id, left_topic_ids } = held
  const left = held.topic_ids.filter((topic) => !topic_ids.includes(topic))
  const all = [...new Set([...left_topic_ids, ...left])].filter((topic) => !topic_ids.includes(topic))
  const kept = { id, topic_ids: [...topic_ids], left_topic_ids: all }
  const has_listeners = await writeTopics(tx, teamId, kept, now)
  if (left.length === 0) return
  const change = { team_id: teamId, contact_id: id, has_listeners, occurred_at: now, detail: '' }
  await publishContacts(tx, [{ ...change, kind: 'topics_left', topic_ids: left }])
  const entry = { team_id: teamId, action: 'contact.leave_topics', subject: id, detail: left.join(', ') }
  await record({ tx, now, actor: by }, entry)
}

/** Removes topics from a contact. Ignores unknown topics. @throws RequestError contact_not_found. */
export async function leaveTopics(
  at: At,
  teamId: string,
  identity: string,
  { topic_ids, by }: { topic_ids: readonly string[]; by: Leaver },
): Promise<void> {
  const held = await topicsOfContact(at.tx, teamId, identity, 'hold')
  if (!held) throw noContact()
  const gone = distinctTopics(topic_ids)
  const kept = held.topic_ids.filter((topic) => !gone.includes(topic))
  if (kept.length < held.topic_ids.length) await keepTopics(at, teamId, held, { topic_ids: kept, by })
}

/**
 * Handles an unsubscribe link: removes topics, or unsubscribes if `topicIds` is null. For a recipient without a
 * contact, stores a keyed hash.
 */
export async function leaveByLink(
  { secrets, ...at }: At & { secrets: Pick<Secrets, 'sign'> },
  teamId: string,
  identity: string,
  topicIds: readonly string[] | null,
): Promise<void> {
  const { tx, now } = at
  if (topicIds?.length === 0) return
  if (!(await isHeld(tx, teamId, identity))) {
    const hash = erasureHash(secrets, teamId, identity)
    await storeOptOut(tx, teamId, { hash, left_topic_ids: topicIds }, now)
  } else if (topicIds === null) await unsubscribe({ ...at, actor: null }, teamId, identity)
  else await leaveTopics(at, teamId, identity, { topic_ids: topicIds, by: 'recipient' })
}

/** True if the contact exists, which locks it. Otherwise the account's lock prevents its creation. */
async function isHeld(tx: Tx, teamId: string, identity: string): Promise<boolean> {
  if (await lockContact(tx, teamId, identity)) return true
  await lockAccount(tx, teamId)
  return (await lockContact(tx, teamId, identity)) !== null
}

/** `contact` is null for an address that isn't a contact. */
type ReportedLeaver = { team_id: string; identity: string; contact: unknown }

/**
 * Unsubscribes recipients after reports that they left through the relay's link, list or page. A suppressed contact
 * stays suppressed, and is unsubscribed when the suppression ends. For an address without a contact, a keyed hash is
 * stored. The caller locks accounts and contacts.
 * @param secrets if undefined, only contacts are unsubscribed.
 */
export async function unsubscribeReported(
  { secrets, ...at }: At & { secrets: Pick<Secrets, 'sign'> | undefined },
  leavers: readonly ReportedLeaver[],
): Promise<void> {
  const distinct = new Map(leavers.map((leaver) => [`${leaver.team_id}/${leaver.identity}`, leaver]))
  for (const { team_id, identity, contact } of distinct.values()) {
    if (contact === null) {
      const hash = secrets && erasureHash(secrets, team_id, identity)
      if (hash) await storeOptOut(at.tx, team_id, { hash, left_topic_ids: null }, at.now)
    } else if (!(await leaveWhileSuppressed(at.tx, team_id, identity)))
      await unsubscribe({ ...at, actor: null }, team_id, identity)
  }
}
