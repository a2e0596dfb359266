/** Finds the email of a request, checks access to internal emails, and records when an operator opens it. */

import { readSuppressTransactional } from '../../../db/accounts/teams/teams.sql.ts'
import { suppressedAmong } from '../../../db/audience/suppressions/addresses.sql.ts'
import { stopsTransactional } from '../../../db/audience/suppressions/cause.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { everyone } from '../../../db/messages/emails/recipients.ts'
import { emailWithState, type ShownEmail } from '../../../db/messages/emails/show.ts'
import type { ListedEmail } from '../../../db/messages/emails/view.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { recipientIdentity } from '../../../db/validation/addressees.ts'
import { type Cell, text } from '../components/cell.ts'
import { auditRead } from '../server/action.ts'
import type { PageDeps } from '../server/deps.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'

/** Returns an email with its state. Only operators can see internal emails. @throws RequestError not_found. */
export async function emailAndState({ team, params, person, now }: TeamRequest<'id'>, deps: PageDeps) {
  const publicUrl = deps.publicUrl ?? undefined
  const found = await emailWithState({ ...deps, tx: deps.database, now, publicUrl }, team.id, params.id)
  if (person.operator || !found.email.internal) return found
  throw new RequestError('not_found', fill(TEXTS.noEmail, { id: params.id }))
}

/** Returns an email. @throws RequestError not_found. */
export const loadEmail = async (request: TeamRequest<'id'>, deps: PageDeps): Promise<ShownEmail> =>
  (await emailAndState(request, deps)).email

export const suppressedRecipients = (
  email: ShownEmail,
  { team }: TeamRequest,
  { database }: Pick<PageDeps, 'database'>,
) =>
  suppressedAmong(
    database,
    everyone(email).map((to) => ({ team_id: team.id, identity: recipientIdentity(to) })),
  )

export type Suppressed = Awaited<ReturnType<typeof suppressedRecipients>>

/** True if a worker deletes the email instead of sending it, because broadcasts never go to suppressed addresses. */
export const isWithdrawn = (
  { broadcast_id }: Pick<ShownEmail, 'broadcast_id'>,
  suppressed: Suppressed,
): boolean => broadcast_id !== null && suppressed.length > 0

/** Returns the recipients of a queued email who will be skipped. */
export async function toBeSkipped(
  email: ShownEmail,
  suppressed: Suppressed,
  { team }: TeamRequest,
  { database }: PageDeps,
): Promise<Suppressed> {
  if (email.status !== 'queued' || !email.waiting || email.waiting.state === 'failed') return []
  if (email.broadcast_id !== null) return suppressed
  // Who requeued it may have chosen to ignore suppressions.
  if (email.internal || email.requeued_at !== null || suppressed.length === 0) return []
  const stops = await readSuppressTransactional(database, team.id)
  return suppressed.filter((one) => stopsTransactional(stops, one))
}

export const emailPath = ({ team, params }: TeamRequest<'id'>, ...rest: string[]): string =>
  teamPath(team, 'emails', params.id, ...rest)

export const noteOpened = async (request: TeamRequest, deps: PageDeps, id: string): Promise<void> =>
  auditRead(request, deps, { action: 'email.open', subject: id })

/** Builds the cell with the recipient of an email: its name and address, and the number of others. */
export function recipientsCell(email: ListedEmail): Cell {
  const [first = '', ...others] = everyone(email)
  const mailbox = parseMailbox(first)
  const more = others.length === 0 ? '' : ` +${others.length}`
  const address = `${mailbox?.address ?? first}${more}`
  return mailbox?.name ? text(mailbox.name, { detail: address }) : text(address)
}
