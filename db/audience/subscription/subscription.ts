/**
 * Unsubscribes and resubscribes contacts, in the caller's transaction.
 * Promises: what a delivery report found outlives an unsubscribe, and no API call lifts it; a repeated call changes
 * nothing; what a person changed is in the audit trail. DECISIONS: Unsubscribe. What reports do to a contact is in
 * apply-events.ts.
 */
import { type Caller, record } from '../../accounts/audit/record.ts'
import { Refusal } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { publishContacts } from '../contacts/changes.ts'
import {
  type ContactRow,
  contactExists,
  lockContact,
  removeContactTopics,
  updateContactStatus,
} from '../contacts/contacts.sql.ts'
import { distinctTopics, noContact } from '../contacts/edit.ts'

async function locked(tx: Tx, teamId: string, identity: string): Promise<ContactRow> {
  const contact = await lockContact(tx, teamId, identity)
  if (!contact) throw noContact()
  return contact
}

async function become(
  by: Caller,
  teamId: string,
  { id }: ContactRow,
  status: 'subscribed' | 'unsubscribed',
): Promise<ContactRow> {
  const { tx, now } = by
  const { heard, ...contact } = await updateContactStatus(tx, teamId, { id, status }, now)
  const kind = status === 'subscribed' ? 'resubscribed' : 'unsubscribed'
  await publishContacts(tx, [{ team_id: teamId, contact_id: id, heard, kind, occurred_at: now, detail: '' }])
  const verb = status === 'subscribed' ? 'resubscribe' : 'unsubscribe'
  await record(by, { team_id: teamId, action: `contact.${verb}`, subject: contact.email })
  return contact
}

/** @throws Refusal contact_not_found. */
export async function unsubscribe(by: Caller, teamId: string, identity: string): Promise<ContactRow> {
  const contact = await locked(by.tx, teamId, identity)
  return contact.status === 'unsubscribed' ? contact : become(by, teamId, contact, 'unsubscribed')
}

/** @throws Refusal contact_not_found, contact_suppressed. */
export async function resubscribe(by: Caller, teamId: string, identity: string): Promise<ContactRow> {
  const contact = await locked(by.tx, teamId, identity)
  const { suppression } = contact
  if (suppression !== null) {
    throw new Refusal('contact_suppressed', `the contact has ${suppression}: it cannot be resubscribed`)
  }
  return contact.status === 'subscribed' ? contact : become(by, teamId, contact, 'subscribed')
}

/** Takes topics off a contact and leaves its status; unknown ones are ignored. @throws Refusal contact_not_found. */
export async function leaveTopics(
  { tx, now }: At,
  teamId: string,
  identity: string,
  topicIds: readonly string[],
): Promise<void> {
  if (!(await contactExists(tx, teamId, identity))) throw noContact()
  await removeContactTopics(tx, teamId, { identity, topic_ids: distinctTopics(topicIds) }, now)
}
