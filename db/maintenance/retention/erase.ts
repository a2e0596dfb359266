/**
 * Erases an address from a team in slices (maintenance/background-jobs): the contact, the recipient in emails and
 * events, content sent only to that address with its files, raw reports that name it, and webhooks about it. Locks the
 * account, then emails, then contacts. Can be repeated, also after a crash. A keyed hash of an address that
 * unsubscribed, bounced, complained or left topics stays (erased.ts). A waiting email to that address only is deleted
 * and refunded to the quota, and so is a waiting broadcast test that shows the contact.
 */
import { NIL } from 'uuid'
import { lockAccount } from '../../accounts/teams/limits.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { lockContact } from '../../audience/contacts/contacts.sql.ts'
import { removeContact } from '../../audience/contacts/edit.ts'
import { keepErased, statusToKeep } from '../../audience/contacts/erased.sql.ts'
import { erasedSuppressions, erasureHash } from '../../audience/contacts/erased.ts'
import { topicsOfContact } from '../../audience/subscription/subscription.sql.ts'
import { deleteAddress } from '../../audience/suppressions/addresses.sql.ts'
import { statusBy } from '../../audience/suppressions/cause.ts'
import { lockTouched } from '../../audience/suppressions/suppress.ts'
import { queuesOf } from '../../channels/channels.sql.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import { deleteSomeOrphans, eraseFiles } from '../../content/files/collect.ts'
import { removeEmails } from '../../messages/emails/remove.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { deleteReasons } from '../../queue/dead-letters.sql.ts'
import { ERASED } from '../../validation/addressees.ts'
import {
  clearSkips,
  deleteReportsNaming,
  deleteWebhooksAbout,
  deleteWebhooksNaming,
  type ErasedEmail,
  lockEmailsOfPerson,
  rewriteEmails,
  rewriteNames,
} from './erase.sql.ts'
import { emailsTo, type FoundEmail, testsShowing } from './person.sql.ts'
import { buildPerson, type ErasedPerson, isPerson, isSoleRecipient, namedIn } from './person.ts'

/** The emails per transaction, and the reports per statement. */
const ERASE_BATCH = 500

export type Erasure = { contact: boolean; emails: number; waiting_emails_deleted: number; reports: number }

async function eraseContact(
  { tx, now }: At,
  { teamId, identity }: ErasedPerson,
  secrets: Pick<Secrets, 'sign' | 'signatures'>,
): Promise<boolean> {
  // Locked before it is read, so that a concurrent unsubscribe counts.
  await lockAccount(tx, teamId)
  const ref = { team_id: teamId, identity }
  const [locked] = await lockTouched(tx, [{ ...ref, email: identity }], now)
  const contact = await lockContact(tx, teamId, identity)
  const before = await erasedSuppressions(tx, secrets, teamId, [identity])
  const stored = await deleteAddress(tx, teamId, identity)
  const known = stored?.cause ?? before.get(identity) ?? null
  const suppression = known && statusBy(known)
  // A complaint after a hard bounce still stops everything that the bounce stops.
  const cause = known !== null && stored?.has_bounced ? 'bounce' : known
  const wish = locked?.contact ? await statusToKeep(tx, teamId, locked.contact.contact_id) : 'subscribed'
  const status = wish === 'unsubscribed' ? wish : (suppression ?? 'subscribed')
  const held = await topicsOfContact(tx, teamId, identity, 'look')
  const left_topic_ids = (held?.left_topic_ids ?? []).filter((id) => !contact?.topic_ids.includes(id))
  if (status !== 'subscribed' || left_topic_ids.length > 0) {
    const hash = erasureHash(secrets, teamId, identity)
    await keepErased(tx, teamId, { hash, status, suppression, cause, left_topic_ids }, now)
  }
  if (!contact) return false
  // The audit entry of the erasure contains a hash of the address.
  await removeContact({ tx, now, actor: null }, teamId, identity)
  await deleteWebhooksAbout(tx, teamId, [contact.id])
  return true
}

/**
 * Returns an email without the erased recipient. Null if it must be deleted, because it waits for no other recipient.
 */
function erasedEmail({ id, to_emails, has_copies, waits }: FoundEmail, identity: string): ErasedEmail | null {
  const others = to_emails.filter((recipient) => !isPerson(recipient, identity))
  const isSole = isSoleRecipient(to_emails, identity)
  if (waits && isSole) return null
  // Removing an earlier recipient would move a copy to another list.
  if (waits && !has_copies) return { id, to: others, empty: false, redact_all: false }
  const to = to_emails.map((recipient) => (isPerson(recipient, identity) ? ERASED : recipient))
  return { id, to, empty: isSole, redact_all: isSole }
}

const idsOf = (emails: readonly { id: string }[]): string[] => emails.map(({ id }) => id)

/**
 * Rewrites emails, and removes the address from failure reasons. A purged email also loses its key, tags and reply
 * address.
 */
async function rewrite(tx: Tx, { teamId, pattern }: ErasedPerson, emails: readonly ErasedEmail[]) {
  const emptied = idsOf(emails.filter(({ empty }) => empty))
  if (emails.length > 0) await rewriteEmails(tx, teamId, emails, pattern)
  if (emptied.length > 0) await rewriteNames(tx, teamId, emptied, pattern)
  if (emails.length > 0) await deleteReasons(tx, queuesOf(EMAIL), idsOf(emails), pattern)
}

async function eraseEmails(tx: Tx, person: ErasedPerson, ids: readonly string[]) {
  const { teamId, identity } = person
  await lockAccount(tx, teamId)
  const named = namedIn(await lockEmailsOfPerson(tx, teamId, ids), person)
  const rewritten = named.flatMap((email) => erasedEmail(email, identity) ?? [])
  const kept = new Set(idsOf(rewritten))
  const gone = idsOf(named).filter((id) => !kept.has(id))
  await eraseFiles(tx, teamId, [...gone, ...idsOf(rewritten.filter(({ empty }) => empty))])
  const deleted = gone.length > 0 ? await removeEmails({ tx }, teamId, gone) : 0
  await rewrite(tx, person, rewritten)
  if (named.length > 0) await deleteWebhooksAbout(tx, teamId, idsOf(named))
  return { rewritten: rewritten.length, deleted }
}

/** The progress of an erasure: the current step, and the row after which it continues. */
type ErasureCursor =
  | { through: 'emails' | 'webhooks' | 'reports'; after: string }
  | { through: 'tests' | 'files' }

/** The result of a slice, and how many rows it checked. `cursor` null: it was the last one. */
type Slice = { cursor: ErasureCursor | null; checked: number } & Partial<Erasure>

type Erasing = At & { secrets: Pick<Secrets, 'sign' | 'signatures'> }

async function beginning({ tx, now, secrets }: Erasing, person: ErasedPerson): Promise<Slice> {
  await requireTeam(tx, person.teamId)
  const contact = await eraseContact({ tx, now }, person, secrets)
  return { cursor: { through: 'emails', after: NIL }, checked: 1, contact }
}

async function emailsSlice(tx: Tx, person: ErasedPerson, after: string): Promise<Slice> {
  // Searched before the account is locked, so that the team's sends don't wait.
  const found = await emailsTo(tx, person.teamId, person.spellings, { after, limit: ERASE_BATCH })
  const ids = idsOf(namedIn(found, person))
  const { rewritten, deleted } =
    ids.length > 0 ? await eraseEmails(tx, person, ids) : { rewritten: 0, deleted: 0 }
  const last = found.at(-1)
  return {
    cursor:
      last && found.length === ERASE_BATCH ? { through: 'emails', after: last.id } : { through: 'tests' },
    checked: found.length,
    emails: rewritten,
    waiting_emails_deleted: deleted,
  }
}

/** Purges the next broadcast tests that show the contact to other recipients. Deletes waiting ones. */
async function testsSlice(tx: Tx, person: ErasedPerson): Promise<Slice> {
  const { teamId, identity } = person
  const ids = await testsShowing(tx, teamId, identity, { after: NIL, limit: ERASE_BATCH })
  if (ids.length > 0) {
    await lockAccount(tx, teamId)
    const tests = await lockEmailsOfPerson(tx, teamId, ids)
    const waiting = tests.filter(({ waits }) => waits)
    const sent = tests.filter(({ waits }) => !waits)
    if (waiting.length > 0) await removeEmails({ tx }, teamId, idsOf(waiting))
    const emptied = sent.map(({ id, to_emails: to }) => ({ id, to, empty: true, redact_all: false }))
    await rewrite(tx, person, emptied)
    await deleteWebhooksAbout(tx, teamId, ids)
  }
  return { cursor: { through: ids.length === ERASE_BATCH ? 'tests' : 'files' }, checked: ids.length }
}

/** Searches webhooks about deleted subjects by address. */
async function webhooksSlice(tx: Tx, { teamId, pattern }: ErasedPerson, after: string): Promise<Slice> {
  const { last, checked } = await deleteWebhooksNaming(tx, teamId, pattern, { after, limit: ERASE_BATCH })
  const cursor: ErasureCursor =
    last === null ? { through: 'reports', after: NIL } : { through: 'webhooks', after: last }
  return { cursor, checked }
}

async function reportsSlice(tx: Tx, { teamId, bytesPattern }: ErasedPerson, after: string): Promise<Slice> {
  const range = { after, limit: ERASE_BATCH }
  const { last, checked, deleted } = await deleteReportsNaming(tx, teamId, bytesPattern, range)
  return { cursor: last === null ? null : { through: 'reports', after: last }, checked, reports: deleted }
}

/**
 * Erases the next batch of rows about this identity.
 * @param cursor null at first, then the one that the last slice returned. @throws RequestError not_found for the
 * team.
 */
export async function eraseSlice(
  at: Erasing,
  teamId: string,
  identity: string,
  cursor: ErasureCursor | null,
): Promise<Slice> {
  const person = buildPerson(teamId, identity)
  if (cursor === null) return beginning(at, person)
  if (cursor.through === 'emails') return emailsSlice(at.tx, person, cursor.after)
  if (cursor.through === 'tests') return testsSlice(at.tx, person)
  if (cursor.through === 'webhooks') return webhooksSlice(at.tx, person, cursor.after)
  if (cursor.through === 'reports') return reportsSlice(at.tx, person, cursor.after)
  // Includes the skips that the deletion of emails has just added.
  await clearSkips(at.tx, teamId, person.spellings)
  const more = await deleteSomeOrphans(at.tx)
  return { cursor: more ? cursor : { through: 'webhooks', after: NIL }, checked: 0 }
}
