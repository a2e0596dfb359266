/**
 * Erases a person from a team: the contact, the recipient in emails and their events, what was said to that person
 * alone, and raw reports that name the address.
 * Promises: repeating it is harmless, and so is a crash between; of somebody who had unsubscribed, bounced or
 * complained a keyed hash stays, so that marketing never mails the address when it is created anew (erased.ts); an
 * email to that person alone that still waits is deleted, and frees its place.
 */
import { domainToUnicode } from 'node:url'
import { contactByIdentity } from '../contacts/contacts.sql.ts'
import { removeContact } from '../contacts/edit.ts'
import { keepErased } from '../contacts/erased.sql.ts'
import { erasureHash } from '../contacts/erased.ts'
import { removeEmail } from '../emails/remove.ts'
import type { At, Database } from '../postgres/pool.ts'
import type { Secrets } from '../process/secrets.ts'
import { teamOrRefusal } from '../teams/view.ts'
import { parsedAddress, parseMailbox } from '../text/address.ts'
import {
  deleteReportsNaming,
  type ErasedEmail,
  type FoundEmail,
  lockEmailsTo,
  rewriteEmails,
  stretchEnd,
} from './erase.sql.ts'

/** What stands in a sent email's recipients where the person stood: the others keep their places. */
export const NOBODY = 'erased@erased.invalid'

/** How many rows one statement looks at. */
const STRETCH = 5_000
const NO_ID = '00000000-0000-0000-0000-000000000000'

export type Erasure = { contact: boolean; emails: number; waiting_emails_deleted: number; reports: number }

type Person = { teamId: string; identity: string; spellings: string[] }

/** An identity as it may be written: with its domain in ASCII form, or in letters. */
function spellingsOf(identity: string): string[] {
  const at = identity.lastIndexOf('@')
  const inLetters = `${identity.slice(0, at + 1)}${domainToUnicode(identity.slice(at + 1))}`
  return [...new Set([identity, inLetters])]
}

function isPerson(recipient: string, identity: string): boolean {
  const mailbox = parseMailbox(recipient)
  return mailbox !== null && parsedAddress(mailbox.address).identity === identity
}

async function eraseContact(
  { tx, now }: At,
  { teamId, identity }: Person,
  secrets: Pick<Secrets, 'sign'>,
): Promise<boolean> {
  const contact = await contactByIdentity(tx, teamId, identity)
  if (!contact) return false
  const { status, suppression } = contact
  if (status !== 'subscribed') {
    await keepErased(tx, teamId, { hash: erasureHash(secrets, teamId, identity), status, suppression }, now)
  }
  await removeContact({ tx }, teamId, identity)
  return true
}

/** What becomes of an email that names the person; null when it is to be deleted, since nobody else waits for it. */
function erasedEmail({ id, to_emails, undelivered }: FoundEmail, identity: string): ErasedEmail | null {
  const others = to_emails.filter((recipient) => !isPerson(recipient, identity))
  if (undelivered) return others.length === 0 ? null : { id, to: others, empty: false }
  const to = to_emails.map((recipient) => (isPerson(recipient, identity) ? NOBODY : recipient))
  return { id, to, empty: others.every((recipient) => recipient === NOBODY) }
}

async function eraseEmails(at: At, person: Person, span: { after: string; last: string }) {
  const { teamId, identity, spellings } = person
  const found = await lockEmailsTo(at.tx, teamId, span, spellings)
  const named = found.filter(({ to_emails }) => to_emails.some((recipient) => isPerson(recipient, identity)))
  const rewritten = named.flatMap((email) => erasedEmail(email, identity) ?? [])
  const kept = new Set(rewritten.map(({ id }) => id))
  for (const { id } of named) if (!kept.has(id)) await removeEmail(at, teamId, id)
  if (rewritten.length > 0) await rewriteEmails(at.tx, teamId, rewritten, spellings)
  return { rewritten: rewritten.length, deleted: named.length - rewritten.length }
}

async function eraseReports(database: Database, { spellings }: Person): Promise<number> {
  let total = 0
  for (let after = NO_ID; ; ) {
    const { last, deleted } = await deleteReportsNaming(database, after, STRETCH / 10, spellings)
    total += deleted
    if (last === null) return total
    after = last
  }
}

/** Erases whoever has this identity. @throws Refusal not_found for the team. */
export async function erasePerson(
  { database, secrets, now }: { database: Database; secrets: Pick<Secrets, 'sign'>; now: Date },
  teamId: string,
  identity: string,
): Promise<Erasure> {
  await teamOrRefusal(database, teamId)
  const person = { teamId, identity, spellings: spellingsOf(identity) }
  const contact = await database.transaction((tx) => eraseContact({ tx, now }, person, secrets))
  const erasure = { contact, emails: 0, waiting_emails_deleted: 0 }
  for (let after = NO_ID; ; ) {
    const last = await stretchEnd(database, teamId, after, STRETCH)
    if (last === null) break
    const span = { after, last }
    const { rewritten, deleted } = await database.transaction((tx) => eraseEmails({ tx, now }, person, span))
    erasure.emails += rewritten
    erasure.waiting_emails_deleted += deleted
    after = last
  }
  return { ...erasure, reports: await eraseReports(database, person) }
}
