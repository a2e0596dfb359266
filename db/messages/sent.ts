/**
 * Lists the messages to a contact on every channel. Other channels than email use the numbers among its properties.
 */

import type { ContactRow } from '../audience/contacts/contacts.sql.ts'
import { contactIdentity } from '../audience/contacts/edit.ts'
import { emailsToContact, type SentEmailRow } from '../audience/contacts/search.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { normalisePhone } from '../validation/phone.ts'
import { type SentBy, sentToNumbers } from './to-numbers.sql.ts'

/** Newest first. Times are ISO 8601. */
type SentToContact = { emails: readonly SentEmailRow[]; to_numbers: readonly SentBy[] }

/** The maximum number of properties that are tried as numbers. */
const MAX_NUMBERS = 5

export async function sentToContact(
  tx: Tx,
  teamId: string,
  { email, properties }: Pick<ContactRow, 'email' | 'properties'>,
  limit: number,
): Promise<SentToContact> {
  const spellings = [...new Set([contactIdentity(email), email.toLowerCase()])]
  const phones = Object.values(properties).flatMap((value) => normalisePhone(value)?.e164 ?? [])
  const recipients = [...new Set(phones)].slice(0, MAX_NUMBERS)
  const emails = await emailsToContact(tx, teamId, spellings, limit)
  return { emails, to_numbers: await sentToNumbers(tx, teamId, recipients, limit) }
}

/** Formats the same for `contact show`: emails, and the messages of each other channel under its name. */
export const sentView = ({ emails, to_numbers }: SentToContact) => ({
  emails,
  ...Object.fromEntries(to_numbers.map(({ channel, sent }) => [`${channel.name}_messages`, sent])),
})
