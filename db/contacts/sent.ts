/**
 * What was sent to a contact, over both channels, for people: design §3 (`contact show`), dashboard (one contact).
 * A contact is known by its address alone; the numbers among its properties are where WhatsApp reaches it.
 */
import type { Tx } from '../postgres/pool.ts'
import { normalisePhone } from '../text/phone.ts'
import { messagesFound } from '../whatsapp/find.sql.ts'
import type { ContactRow } from './contacts.sql.ts'
import { contactIdentity } from './edit.ts'
import { emailsToContact, type SentEmailRow } from './search.sql.ts'

/** Newest first. Times are ISO 8601. */
export type SentToContact = {
  emails: readonly SentEmailRow[]
  whatsapp_messages: readonly {
    id: string
    recipient: string
    template_id: string
    status: string
    created_at: string
  }[]
}

/** How many of its properties are taken for numbers: properties are free-form, and each costs a look-up. */
const MOST_NUMBERS = 5

/** The latest messages to a contact, at most `limit` of each channel. */
export async function sentToContact(
  tx: Tx,
  teamId: string,
  { email, properties }: Pick<ContactRow, 'email' | 'properties'>,
  limit: number,
): Promise<SentToContact> {
  const spellings = [...new Set([contactIdentity(email), email.toLowerCase()])]
  const phones = Object.values(properties).flatMap((value) => normalisePhone(value)?.e164 ?? [])
  const recipients = [...new Set(phones)].slice(0, MOST_NUMBERS)
  const emails = await emailsToContact(tx, teamId, spellings, limit)
  const found = []
  for (const recipient of recipients)
    found.push(...(await messagesFound(tx, teamId, { recipient }, { limit })))
  const newest = found.sort((one, other) => (one.id < other.id ? 1 : -1)).slice(0, limit)
  return {
    emails,
    whatsapp_messages: newest.map(({ id, recipient, template_id, status, created_at }) => ({
      id,
      recipient,
      template_id,
      status,
      created_at,
    })),
  }
}
