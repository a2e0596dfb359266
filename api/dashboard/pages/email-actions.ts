/** Actions of an email: requeue, cancel or reschedule it, send a copy, resend it to another address, delete it. */

import { EMAIL } from '../../../db/channels/email.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { everyone } from '../../../db/messages/emails/recipients.ts'
import { removeEmail } from '../../../db/messages/emails/remove.ts'
import { copyEmail, resendEmail } from '../../../db/messages/emails/send-again.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { asActor } from '../server/action.ts'
import { action, buildForm, field, post } from '../server/builders.ts'
import { redirect, type TeamRequest, teamPath } from '../server/page.ts'
import { emailPath, loadEmail, noteOpened, suppressedRecipients } from './email-place.ts'
import { countOwn } from './own-mail.ts'
import { requeueAsAsked, requeueQuestion } from './requeue.ts'
import { scheduledActs } from './scheduled.ts'

const requeue = post('editor', '/teams/:team/emails/:id/requeue', async (request, deps) => {
  return redirect(emailPath(request), await requeueAsAsked(request, deps, EMAIL))
}).confirm(async (request, deps) => {
  const email = await loadEmail(request, deps)
  const what = `“${email.subject}” to ${everyone(email).join(', ')}`
  const asked = await requeueQuestion(request, deps, EMAIL, what)
  const suppressed = asked ? await suppressedRecipients(email, request, deps) : []
  const stops = suppressed.map(
    (each) =>
      `${each.email} is suppressed (${each.cause.replace('_', ' ')}), but this email is sent to it anyway.`,
  )
  return asked && { ...asked, warning: [asked.warning, ...stops].join(' ') }
})

const copy = post('editor', '/teams/:team/emails/:id/copy', async (request, deps) => {
  const { person } = request
  const email = await loadEmail(request, deps)
  await noteOpened(request, deps, email.id)
  countOwn(deps, await asActor(request, deps, (by) => copyEmail({ ...deps, ...by }, email, person.email)))
  return redirect(emailPath(request), `A copy is on its way to ${person.email}.`)
})

/** Builds a form that sends the same content to a corrected address. */
export function resendForm(email: ShownEmail, isEmptied: boolean, request: TeamRequest<'id'>) {
  const isResendable = !email.internal && !isEmptied && email.broadcast_id === null
  if (request.team.role === 'viewer' || !isResendable) return null
  const all = everyone(email)
  const former = all.length === 1 ? parseMailbox(all[0] ?? '') : null
  const to = field('to', 'Corrected address', {
    type: 'email',
    required: true,
    value: former?.address ?? '',
    hint: `Sends a new email with the same content${former?.name ? `, still to “${former.name}”` : ''}${all.length > 1 ? ' only to this address' : ''}. It counts towards your quota.`,
  })
  return buildForm(emailPath(request, 'resend'), 'Send to this address', {
    title: 'Send to a corrected address',
    // Only a bounced email needs it.
    folded: email.status === 'bounced' ? true : 'quiet',
    fields: [to],
  })
}

const resend = post('editor', '/teams/:team/emails/:id/resend', async (request, deps) => {
  const { team, form } = request
  const email = await loadEmail(request, deps)
  const mailbox = parseMailbox(form.get('to') ?? '')
  if (!mailbox) throw invalidField('to', 'must be an email address')
  const id = countOwn(
    deps,
    await asActor(request, deps, (by) => resendEmail({ ...deps, ...by }, email, mailbox)),
  )
  return redirect(teamPath(team, 'emails', id), `Sent to ${mailbox.address}. This is the new email.`)
})

const remove = action('owner', '/teams/:team/emails/:id/delete', async (by, { team, params }) => {
  await removeEmail(by, team.id, params.id)
  return redirect(teamPath(team, 'emails'), 'The email was deleted.')
}).confirm(async (request, deps) => {
  const email = await loadEmail(request, deps)
  return {
    question: `Delete “${email.subject}” to ${everyone(email).join(', ')}?`,
    answer: 'Delete email',
    warning: 'The email is deleted with its timeline. You can’t undo this.',
    tone: 'danger',
  }
})

export const emailActs = [requeue, copy, resend, remove, ...scheduledActs(EMAIL, 'email')]
