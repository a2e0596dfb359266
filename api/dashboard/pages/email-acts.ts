/** What is done with one email: tried again, sent to oneself or to a corrected address, deleted. */
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { Refusal } from '../../../db/errors.ts'
import { removeEmail } from '../../../db/messages/emails/remove.ts'
import { copyEmail, resendEmail } from '../../../db/messages/emails/send-again.ts'
import { parseMailbox } from '../../../db/text/address.ts'
import { inPerson } from '../served/act.ts'
import { redirect, type TeamPage, teamPath } from '../served/page.ts'
import { emailOf, here, noteOpened } from './email-place.ts'
import { countOwn } from './own-mail.ts'
import { requeueAsAsked } from './requeue.ts'

const requeue: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/requeue',
  access: 'editor',
  async handle(request, deps) {
    return redirect(here(request), await requeueAsAsked(request, deps, EMAIL))
  },
}

const copy: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/copy',
  access: 'editor',
  async handle(request, deps) {
    const { person } = request
    const email = await emailOf(request, deps)
    await noteOpened(request, deps, email.id)
    countOwn(deps, await inPerson(request, deps, (by) => copyEmail({ ...deps, ...by }, email, person.email)))
    return redirect(here(request), `A copy is on its way to ${person.email}.`)
  },
}

const resend: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/resend',
  access: 'editor',
  async handle(request, deps) {
    const { team, form } = request
    const email = await emailOf(request, deps)
    const mailbox = parseMailbox(form.get('to') ?? '')
    if (!mailbox) throw new Refusal('bad_request', 'to must be an email address')
    const id = countOwn(
      deps,
      await inPerson(request, deps, (by) => resendEmail({ ...deps, ...by }, email, mailbox)),
    )
    return redirect(teamPath(team, 'emails', id), `This is the new email, to ${mailbox.address}.`)
  },
}

const remove: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/delete',
  access: 'owner',
  async handle(request, deps) {
    const { team, params } = request
    await inPerson(request, deps, (by) => removeEmail(by, team.id, params.id ?? ''))
    return redirect(teamPath(team, 'emails'), 'The email is deleted.')
  },
}

export const emailActs = [requeue, copy, resend, remove]
