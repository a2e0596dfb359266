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

/** Sets the topics of a contact. Ignores topics that weren't offered. @throws RequestError contact_not_found. */
export async function choose(
  { secrets, ...at }: At & { secrets: Pick<Secrets, 'sign' | 'signatures'> },
  teamId: string,
  identity: string,
  topicIds: readonly string[],
): Promise<ContactRow> {
  const { tx } = at
  const known = await holdTopics(tx, teamId, distinctTopics(topicIds.filter(isUuid)))
  const held = await topicsOfContact(tx, teamId, identity, 'hold')
  if (!held) throw noContact()
  const offered = offeredIds(held)
  const topic_ids = [...known].filter((id) => offered.has(id))
  await keepTopics(at, teamId, held, { topic_ids, by: 'recipient' })
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
