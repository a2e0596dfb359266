/**
 * Stores, in the caller's transaction, the topics that a recipient chooses on the unsubscribe page, which shows the
 * topics that the contact gets or has left. Choosing a topic resubscribes the contact. Suppressions stay.
 */
import type { At, Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { isUuid } from '../../validation/strings.ts'
import { type ContactRow, contactByIdentity } from '../contacts/contacts.sql.ts'
import { distinctTopics, noContact } from '../contacts/edit.ts'
import { holdTopics, type TopicRow, topicsOfTeam } from '../contacts/topics.sql.ts'
import { findSuppressed } from '../suppressions/suppressed.ts'
import { type ContactTopics, topicsOfContact } from './subscription.sql.ts'
import { keepTopics, resubscribe, unsubscribe } from './subscription.ts'

const offeredIds = ({ topic_ids, left_topic_ids }: ContactTopics): Set<string> =>
  new Set([...topic_ids, ...left_topic_ids])

export async function topicsOffered(tx: Tx, teamId: string, identity: string): Promise<readonly TopicRow[]> {
  const held = await topicsOfContact(tx, teamId, identity, 'look')
  const offered = held ? offeredIds(held) : new Set()
  return (await topicsOfTeam(tx, teamId)).filter(({ id }) => offered.has(id))
}

/** The chosen topics of a page, and all topics that it showed. A null means every offered topic. */
export type Choice = { chosen: readonly string[]; shown: readonly string[] | null }

/**
 * Sets the topics of a contact, except those added since its page was shown. Ignores topics that weren't
 * offered. @returns null if the contact doesn't exist.
 */
export async function choose(
  { secrets, ...at }: At & { secrets: Pick<Secrets, 'sign' | 'signatures'> },
  teamId: string,
  identity: string,
  { chosen, shown }: Choice,
): Promise<ContactRow | null> {
  const { tx } = at
  const known = await holdTopics(tx, teamId, distinctTopics(chosen.filter(isUuid)))
  const held = await topicsOfContact(tx, teamId, identity, 'hold')
  if (!held) return null
  const offered = offeredIds(held)
  const topic_ids = [...known].filter((id) => offered.has(id))
  const unseen = shown === null ? [] : held.topic_ids.filter((id) => !shown.includes(id))
  await keepTopics(at, teamId, held, { topic_ids: [...new Set([...topic_ids, ...unseen])], by: 'recipient' })
  const own = { ...at, actor: null }
  if (topic_ids.length === 0) return unsubscribe(own, teamId, identity)
  const contact = await contactByIdentity(tx, teamId, identity)
  if (!contact) throw noContact()
  if (contact.status !== 'subscribed') {
    const found = await findSuppressed(tx, secrets, teamId, [identity])
    if (contact.suppression !== null || found.has(identity)) return contact
  }
  return resubscribe({ ...own, secrets }, teamId, identity, topic_ids)
}
