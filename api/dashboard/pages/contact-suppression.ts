/** The suppression of a contact or an address: its effect, its cause, and the form that lifts it. */

import { readSuppressTransactional } from '../../../db/accounts/teams/teams.sql.ts'
import { contactIdentity } from '../../../db/audience/contacts/edit.ts'
import type { Cause } from '../../../db/audience/contacts/effect.ts'
import { type SuppressedAddress, suppressedAddress } from '../../../db/audience/suppressions/addresses.sql.ts'
import { stopsTransactional } from '../../../db/audience/suppressions/cause.ts'
import {
  type ContactDetail,
  liftSuppression,
  suppressionMark,
} from '../../../db/audience/suppressions/lift.ts'
import { addresseesOfEmail } from '../../../db/messages/emails/emails.sql.ts'
import { responseCell } from '../components/bounces.ts'
import { text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { action, buildAlerts, buildForm, field, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, type TeamRequest, teamPath } from '../server/page.ts'

/** Returns the path of a contact's page, or of one below it. */
export const contactPath = ({ team, params }: TeamRequest<'email'>, ...rest: string[]): string =>
  teamPath(team, 'contacts', params.email, ...rest)

type ShownAddress = Pick<ContactDetail, 'email' | 'suppression' | 'suppression_cause'>

/** Describes which messages the suppression of an address stops. */
async function effectWords(
  { team }: TeamRequest,
  { database }: PageDeps,
  stored: SuppressedAddress | null,
): Promise<string> {
  const which = await readSuppressTransactional(database, team.id)
  return stored && stopsTransactional(which, stored)
    ? 'No email is sent to this address.'
    : 'Only transactional email is sent to this address.'
}

/** Describes the cause of a suppression, in short if its email has the full one. Empty if it is unknown. */
function describeCause(cause: ShownAddress['suppression_cause'], isKept: boolean): string {
  if (!cause?.detail) return ''
  const { text: words, detail } = responseCell(cause.detail)
  if (detail && isKept) return ` ${words}.`
  return ` ${cause.email_id === null ? 'Reason' : 'Response'}: ${words}${detail ? ` (${detail})` : ''}.`
}

/** Shows the ID of the report of a suppression. The alert has its other details. */
export const reportFact = ({ suppression_cause: cause }: ShownAddress) => ({
  'Delivery report that caused it': cause?.report_id ? text(cause.report_id, { code: true }) : null,
})

/** True if a user added the suppression, with any cause. */
export const isManual = (cause: Pick<SuppressedAddress, 'email_id' | 'report_id'> | null): boolean =>
  cause !== null && cause.email_id === null && cause.report_id === null

export const CAUSE_NAMES: Readonly<Record<Cause, string>> = {
  bounce: 'hard bounce',
  complaint: 'complaint',
  soft_bounces: 'soft bounces',
  manual: 'added manually',
}

/** Names the cause of a suppression, and tells if a user added it. */
export function causeName(stored: Pick<SuppressedAddress, 'cause' | 'email_id' | 'report_id'>): string {
  const name = CAUSE_NAMES[stored.cause]
  return isManual(stored) && stored.cause !== 'manual' ? `${name}, ${CAUSE_NAMES.manual}` : name
}

function describeLift({ suppression, suppression_cause: cause }: ShownAddress): string {
  if (suppression === 'complained')
    return 'The recipient reported an email as spam, or doesn’t want to be contacted. Lift the suppression only at their request. Another complaint harms your reputation as a sender.'
  if (cause?.what === 'soft bounces') return 'The mailbox was full or unavailable several times in a row.'
  if (isManual(cause)) return 'It was added manually.'
  return 'The mailbox rejected email permanently. If the mailbox still rejects it, the next email bounces and harms your reputation as a sender.'
}

const liftForm = (contact: ShownAddress, request: TeamRequest<'email'>): Section =>
  buildForm(contactPath(request, 'lift'), 'Lift suppression', {
    title: 'Lift the suppression',
    // Lifting a complaint needs the recipient's own request.
    folded: contact.suppression === 'complained' ? 'menu' : 'quiet',
    note: describeLift(contact),
    fields: [
      field('reason', 'Reason', {
        required: true,
        hint: 'Recorded in the audit log. A contact returns to its previous status.',
      }),
      hidden('seen', suppressionMark(contact), true),
    ],
  })

/** Builds the alert about a suppression, with its effect. */
export async function suppressionAlert(contact: ShownAddress, request: TeamRequest<'email'>, deps: PageDeps) {
  const { team, now } = request
  if (contact.suppression === null) return []
  const cause = contact.suppression_cause
  const email = cause?.email_id ?? null
  const isKept = email !== null && (await addresseesOfEmail(deps.database, team.id, email)) !== null
  const stored = await suppressedAddress(deps.database, team.id, contactIdentity(request.params.email))
  const name = stored ? causeName(stored) : (cause?.what ?? contact.suppression)
  return buildAlerts([
    {
      tone: 'bad',
      title: `Suppressed: ${name}${cause ? ',' : ''}`,
      at: cause ? time(cause.at, now) : undefined,
      text: `${await effectWords(request, deps, stored)}${describeCause(cause, isKept)}`,
      link: isKept ? { href: teamPath(team, 'emails', email), label: 'Show email' } : undefined,
    },
  ])
}

export const liftForms = (contact: ShownAddress, request: TeamRequest<'email'>): Section[] =>
  contact.suppression !== null && request.team.role !== 'viewer' ? [liftForm(contact, request)] : []

export const liftAction = action('editor', '/teams/:team/contacts/:email/lift', async (by, request) => {
  const { team, params, form } = request
  const given = { reason: form.get('reason') ?? '', seen: form.get('seen') }
  await liftSuppression(by, team.id, { identity: contactIdentity(params.email), ...given })
  return redirect(contactPath(request), 'The suppression is lifted.')
})
