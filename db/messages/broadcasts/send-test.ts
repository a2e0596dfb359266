/**
 * Sends a broadcast to a few addresses as a test, in any state, with the data of one contact. A test is an ordinary
 * email: it uses the quota but not the rate limit, and isn't part of the broadcast's stats. Its unsubscribe link
 * works for no one.
 */

import { type Caller, record } from '../../accounts/audit/record.ts'
import { contactByIdentity } from '../../audience/contacts/contacts.sql.ts'
import { contactIdentity, noContact } from '../../audience/contacts/edit.ts'
import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { formatMailbox, parseMailbox } from '../../validation/address.ts'
import { type AcceptDeps, acceptEmails, idsOf } from '../emails/accept.ts'
import { broadcastToken, unsubscribeUrl } from '../emails/unsubscribe-token.ts'
import { TEXTS } from '../texts.ts'
import { blocked, versionToSend } from './blockers.ts'
import { type Acting, assertDomain, requireBroadcast } from './draft.ts'
import { addressed, toMailing } from './mailing.ts'

type Deps = Caller & Omit<AcceptDeps, 'links'> & { secrets: Secrets; publicUrl: string | null }

/** Returns the contact whose properties a test shows. @throws RequestError contact_not_found. */
async function findPerson(tx: Tx, teamId: string, email: string) {
  const contact = await contactByIdentity(tx, teamId, contactIdentity(email))
  if (!contact) throw noContact()
  return contact
}

/**
 * @param contact fills the variables. Without a contact, variables without a default show their names.
 * @returns the IDs of the emails.
 * @throws RequestError not_found, domain_not_allowed, contact_not_found, invalid_state, and the errors of a send.
 */
export async function sendTest(
  deps: Deps,
  acting: Acting,
  id: string,
  { to, contact }: { to: readonly string[]; contact: string | undefined },
): Promise<string[]> {
  const { tx, secrets, publicUrl } = deps
  const row = await requireBroadcast(tx, acting.team_id, id)
  assertDomain(acting, row.from_address)
  const { version_id, slots, blockers } = await versionToSend(tx, row, publicUrl)
  const base = row.link_base ?? publicUrl
  if (blockers.length > 0 || base === null || version_id === null) throw blocked(row, blockers, 'tested')
  const nobody = { team_id: row.team_id, broadcast_id: row.id, person: '' }
  const token = broadcastToken(secrets, nobody)
  const link = unsubscribeUrl(base, token)
  const person = contact === undefined ? null : await findPerson(tx, row.team_id, contact)
  const shown = toMailing(row, slots)
  const names = Object.fromEntries(shown.slots.map((slot) => [slot, `{{${slot}}}`]))
  const mailing = person ? shown : { ...shown, row: { ...row, variables: { ...names, ...row.variables } } }
  const items = to.map((given) => {
    const mailbox = parseMailbox(given)
    const someone = person ?? { email: mailbox?.address ?? given, properties: {} }
    const item = addressed(mailing, someone, link)
    if (typeof item === 'string') throw requestError('bad_request', TEXTS.noTest, { reason: item })
    const headers = {
      ...item.headers,
      'List-Unsubscribe': `<${link}>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    }
    const shows = person ? { person: contactIdentity(person.email) } : {}
    return { ...item, ...shows, headers, to: [mailbox ? formatMailbox(mailbox) : given] }
  })
  const version = { version_id, slots }
  const sender = { team_id: row.team_id, domain: acting.domain, version, rated: false as const }
  const outcomes = await acceptEmails({ ...deps, links: null }, sender, items)
  const ids = idsOf(outcomes)
  const { team_id } = row
  await record(deps, { team_id, action: 'broadcast.test', subject: row.id, detail: to.join(', ') })
  return ids
}
