/**
 * The suppression of a contact, for people: what caused it, and its end by a person who gives a reason.
 * Promises: lifting brings back the status from before, and restarts the count of soft bounces. The API never lifts
 * anything. It is noted in the audit trail, with the reason. DECISIONS: Suppression.
 */
import { type By, record } from '../../accounts/audit/record.ts'
import { RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { assertSeen } from '../../validation/mark.ts'
import { publishContacts } from '../contacts/changes.ts'
import { type ContactRow, contactByIdentity, lockContact } from '../contacts/contacts.sql.ts'
import { noContact } from '../contacts/edit.ts'
import type { SuppressionCause } from '../contacts/effect.ts'
import { endWishes } from '../contacts/erased.ts'
import { liftContact, suppressionOf } from './suppressions.sql.ts'

/** A contact as people see it: with what suppresses it, and when somebody last lifted that. */
export type ContactDetail = ContactRow & {
  suppression_cause: SuppressionCause | null
  suppression_lifted_at: string | null
}

const LONGEST_REASON = 500

/** Why a person does it, trimmed. @throws RequestError bad_request. */
export function reasonOf(text: string): string {
  const words = text.trim()
  if (words === '' || words.length > LONGEST_REASON)
    throw new RequestError('bad_request', `the reason must have 1 to ${LONGEST_REASON} characters`)
  return words
}

/** A contact with the cause of its suppression. @throws RequestError contact_not_found. */
export async function showContact(tx: Tx, teamId: string, identity: string): Promise<ContactDetail> {
  const contact = await contactByIdentity(tx, teamId, identity)
  const found = contact && (await suppressionOf(tx, teamId, contact.id))
  if (!found) throw noContact()
  return { ...contact, suppression_cause: found.suppression_cause, suppression_lifted_at: found.lifted_at }
}

/** By which a suppression is known again as the one that was shown. */
export const markOfSuppression = ({
  suppression,
  suppression_cause: cause,
}: Pick<ContactDetail, 'suppression' | 'suppression_cause'>): string => `${suppression} ${cause?.at ?? ''}`

/**
 * Ends a contact's suppression: it becomes `unsubscribed` if it had unsubscribed, else `subscribed`.
 * @param seen the mark of the suppression that the person has seen, where a page showed one.
 * @throws RequestError contact_not_found; bad_request without a suppression or a reason; invalid_state when it is not
 * the one that was seen: a complaint is not lifted with the bounce before it.
 */
export async function liftSuppression(
  { secrets, ...by }: By & { secrets: Pick<Secrets, 'sign' | 'signatures'> },
  teamId: string,
  { identity, reason, seen = null }: { identity: string; reason: string; seen?: string | null },
): Promise<ContactDetail> {
  const { tx, now } = by
  const words = reasonOf(reason)
  const contact = await lockContact(tx, teamId, identity)
  if (!contact) throw noContact()
  if (contact.suppression === null) throw new RequestError('bad_request', 'the contact is not suppressed')
  const mark = markOfSuppression(await showContact(tx, teamId, identity))
  assertSeen(seen, mark, 'the contact was suppressed for another cause meanwhile')
  const has_listeners = await liftContact(tx, teamId, contact.id, now)
  await publishContacts(tx, [
    {
      team_id: teamId,
      contact_id: contact.id,
      has_listeners,
      kind: 'released',
      occurred_at: now,
      detail: words,
    },
  ])
  await record(by, { team_id: teamId, action: 'contact.lift', subject: contact.email, detail: words })
  const lifted = await showContact(tx, teamId, identity)
  const status = lifted.status === 'unsubscribed' ? 'unsubscribed' : 'subscribed'
  await endWishes({ ...by, secrets }, teamId, identity, { status })
  return lifted
}
