/**
 * What a recipient chooses behind an unsubscribe link: the topics to have, in the caller's transaction.
 * Promises: the wish is the contact's own, so choosing a topic subscribes again; what a report found stays in the way.
 */
import type { At } from '../../postgres/pool.ts'
import { isUuid } from '../../text/strings.ts'
import { type ContactRow, lockContact, updateContact } from '../contacts/contacts.sql.ts'
import { distinctTopics, noContact } from '../contacts/edit.ts'
import { holdTopics } from '../contacts/topics.sql.ts'
import { resubscribe, unsubscribe } from './subscription.ts'

/** Sets the topics of a contact; unknown ones are left out. @throws Refusal contact_not_found. */
export async function choose(
  { tx, now }: At,
  teamId: string,
  identity: string,
  topicIds: readonly string[],
): Promise<ContactRow> {
  const known = await holdTopics(tx, teamId, distinctTopics(topicIds.filter(isUuid)))
  const topic_ids = distinctTopics(topicIds.filter((id) => known.has(id.toLowerCase())))
  const contact = await lockContact(tx, teamId, identity)
  if (!contact) throw noContact()
  const changed = (await updateContact(tx, teamId, { identity, topic_ids }, now)) ?? contact
  const own = { tx, now, actor: null }
  if (topic_ids.length === 0) return unsubscribe(own, teamId, identity)
  const isFree = contact.suppression === null && contact.status === 'unsubscribed'
  return isFree ? resubscribe(own, teamId, identity) : changed
}
