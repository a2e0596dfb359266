/** What is done with one email: tried again, sent to oneself or to a corrected address, deleted. */
import { record } from '../../../db/accounts/audit/record.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { reusedFiles } from '../../../db/content/files/reuse.ts'
import { Refusal } from '../../../db/errors.ts'
import type { EmailItem } from '../../../db/messages/emails/call.ts'
import { removeEmail } from '../../../db/messages/emails/remove.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import { parseMailbox } from '../../../db/text/address.ts'
import { SIGN_IN_TAG } from '../../../db/text/tags.ts'
import type { PageDeps } from '../served/deps.ts'
import { redirect, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { emailOf, here, isSecret, noteOpened } from './email-place.ts'
import { sendOwn } from './own-mail.ts'
import { requeueAsAsked } from './requeue.ts'

const requeue: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/requeue',
  access: 'editor',
  async handle(request, deps) {
    return redirect(here(request), await requeueAsAsked(request, deps, EMAIL, 'email.requeue'))
  },
}

/** Sends what an email holds to somebody else. @returns the new email's id. @throws Refusal. */
async function sendAgain(
  email: ShownEmail,
  { team }: TeamRequest,
  deps: PageDeps,
  { to, tags, reply_to, headers }: Pick<EmailItem, 'to' | 'tags' | 'reply_to' | 'headers'>,
): Promise<string> {
  const from = parseMailbox(email.from_address)
  if (!from || isSecret(email)) throw new Refusal('bad_request', 'this email cannot be copied')
  const { subject, html, body_text, attachments } = email
  return sendOwn(deps, team.id, {
    path: '',
    from,
    to,
    subject,
    html,
    template_id: null,
    variables: null,
    text: body_text === '' ? null : body_text,
    headers,
    reply_to,
    tags,
    idempotency_key: null,
    ...(attachments ? { attachments: await reusedFiles(deps.database, team.id, attachments) } : {}),
  })
}

const copy: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/copy',
  access: 'editor',
  async handle(request, deps) {
    const { person } = request
    const email = await emailOf(request, deps)
    await noteOpened(request, deps, email.id)
    await sendAgain(email, request, deps, { to: [person.email], tags: ['copy'], reply_to: '', headers: null })
    return redirect(here(request), `A copy is on its way to ${person.email}.`)
  },
}

const resend: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/resend',
  access: 'editor',
  async handle(request, deps) {
    const { team, form, person, now } = request
    const email = await emailOf(request, deps)
    const mailbox = parseMailbox(form.get('to') ?? '')
    if (!mailbox) throw new Refusal('bad_request', 'to must be an email address')
    if (email.broadcast_id !== null)
      throw new Refusal('bad_request', 'a broadcast goes to contacts: correct the contact’s address instead')
    const { reply_to, headers } = email
    // The customer's own tag of this name would have the new email, which no request brought, taken for ours.
    const tags = email.tags.filter((tag) => tag !== SIGN_IN_TAG)
    const id = await sendAgain(email, request, deps, { to: [mailbox.address], tags, reply_to, headers })
    await record(
      { tx: deps.database, now, actor: person.email },
      { team_id: team.id, action: 'email.resend', subject: email.id, detail: id },
    )
    return redirect(teamPath(team, 'emails', id), `This is the new email, to ${mailbox.address}.`)
  },
}

const remove: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/delete',
  access: 'owner',
  async handle({ team, params, person, now }, { database }) {
    const id = params.id ?? ''
    await database.transaction(async (tx) => {
      await removeEmail({ tx }, team.id, id)
      await record(
        { tx, now, actor: person.email },
        { team_id: team.id, action: 'email.delete', subject: id },
      )
    })
    return redirect(teamPath(team, 'emails'), 'The email is deleted.')
  },
}

export const emailActs = [requeue, copy, resend, remove]
