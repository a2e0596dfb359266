/** One email: what became of it, who said what, why it waits, what it holds; and what can be done about it. */
import { record } from '../../../db/accounts/audit/record.ts'
import { contactsWithIdentities, type RecipientContact } from '../../../db/audience/contacts/search.sql.ts'
import { EMAIL } from '../../../db/channels/channels.sql.ts'
import { reusedFiles } from '../../../db/content/files/reuse.ts'
import { requeueWay } from '../../../db/delivery/requeue.ts'
import { Refusal } from '../../../db/errors.ts'
import { recipientIdentity } from '../../../db/messages/emails/recipients.ts'
import { removeEmail } from '../../../db/messages/emails/remove.ts'
import { type ShownEmail, showEmail } from '../../../db/messages/emails/show.ts'
import { parseMailbox } from '../../../db/text/address.ts'
import { SIGN_IN_TAG } from '../../../db/text/tags.ts'
import { type Cell, status, text, time } from '../drawn/cell.ts'
import type { Form, Section } from '../drawn/section.ts'
import { momentsOf, outcomesOf, waitingAlerts } from '../drawn/story.ts'
import { noteLook } from '../served/act.ts'
import type { PageDeps } from '../served/deps.ts'
import { frameHeaders } from '../served/guard.ts'
import { raw, redirect, show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { fileAnswer, fileAt, filesTable, withPictures } from './email-files.ts'
import { sendOwn } from './own-mail.ts'
import { requeueAsAsked, requeueForms } from './requeue.ts'

/** An email to look at; a sign-in mail is an operator's to look at. @throws Refusal not_found. */
async function emailOf({ team, params, person, now }: TeamRequest, deps: PageDeps): Promise<ShownEmail> {
  const publicUrl = deps.publicUrl ?? undefined
  const email = await showEmail({ ...deps, tx: deps.database, now, publicUrl }, team.id, params.id ?? '')
  if (person.operator || email.http_request_id !== null || !isSecret(email)) return email
  throw new Refusal('not_found', `there is no email ${email.id} in this team`)
}

const here = ({ team, params }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'emails', params.id ?? '', ...rest)

function facts(email: ShownEmail, contacts: Contacts, { team, now }: TeamRequest): Section {
  const contact = email.to_emails.length === 1 ? [...contacts.values()][0] : undefined
  const template = email.template_id
  return {
    kind: 'facts',
    id: 'facts',
    live: true,
    facts: [
      { label: 'Status', cell: status(email.status) },
      { label: 'From', cell: text(email.from_address) },
      {
        label: 'To',
        cell: text(
          email.to_emails.join(', '),
          contact ? { href: teamPath(team, 'contacts', contact.email) } : {},
        ),
      },
      ...(email.reply_to === '' ? [] : [{ label: 'Reply to', cell: text(email.reply_to) }]),
      { label: 'Accepted', cell: time(email.created_at, now) },
      ...(email.requeued_at ? [{ label: 'Requeued', cell: time(email.requeued_at, now) }] : []),
      ...(template
        ? [
            {
              label: 'Template',
              cell: text(template, { code: true, href: teamPath(team, 'templates', template) }),
            },
          ]
        : []),
      { label: 'Tags', cell: text(email.tags.join(', ')) },
      { label: 'ID', cell: text(email.id, { code: true, copy: true }) },
      { label: 'Request ID', cell: text(email.http_request_id, { code: email.http_request_id !== null }) },
      {
        label: 'Idempotency key',
        cell: text(email.idempotency_key, { code: email.idempotency_key !== null }),
      },
      {
        label: 'Provider ID',
        cell: text(email.provider_message_id, { code: email.provider_message_id !== null }),
      },
      { label: 'Size', cell: text(`${email.size_kb} kB`) },
    ],
  }
}

type Contacts = ReadonlyMap<string, RecipientContact>

/** The contacts among the recipients, by identity. */
async function contactsOf(
  email: ShownEmail,
  { team }: TeamRequest,
  { database }: PageDeps,
): Promise<Contacts> {
  const identities = email.to_emails.map(recipientIdentity)
  const contacts = await contactsWithIdentities(database, team.id, identities)
  return new Map(contacts.map((contact) => [contact.identity, contact]))
}

/** Who of the recipients should get nothing more, with the way to the cause and to lifting it. */
function suppressed(contacts: Contacts, { team }: TeamRequest): Section[] {
  const alerts = [...contacts.values()]
    .filter(({ suppression }) => suppression !== null)
    .map(({ email, suppression }) => ({
      tone: 'warn' as const,
      title: `${email} is suppressed: it ${suppression === 'bounced' ? 'bounced' : 'complained'}`,
      text: 'An email sent to it goes out all the same: the suppression is for your program to read.',
      link: { href: teamPath(team, 'contacts', email), label: 'The contact, and how to lift it' },
    }))
  return alerts.length === 0 ? [] : [{ kind: 'alerts', title: 'Suppressed', calm: '', alerts }]
}

function recipients(email: ShownEmail, contacts: Contacts, request: TeamRequest): Section {
  const { team } = request
  const contactCell = (address: string): Cell => {
    const contact = contacts.get(recipientIdentity(address))
    return contact ? text('Show', { href: teamPath(team, 'contacts', contact.email) }) : text(null)
  }
  return {
    kind: 'table',
    title: 'Recipients',
    columns: ['Address', 'What became of it', 'In the server’s words', 'Contact'].map((label) => ({ label })),
    rows: outcomesOf(email, request).map(({ address, outcome, words }) => ({
      cells: [
        text(address, { href: `${teamPath(team, 'emails')}?${new URLSearchParams({ recipient: address })}` }),
        status(outcome),
        text(words),
        contactCell(address),
      ],
    })),
    empty: '',
  }
}

const action = (request: TeamRequest, verb: string, form: Partial<Form>): Form => ({
  action: here(request, verb),
  method: 'post',
  fields: [],
  submit: verb,
  ...form,
})

async function actions(email: ShownEmail, request: TeamRequest, { database }: PageDeps): Promise<Section[]> {
  const { team } = request
  if (team.role === 'viewer') return []
  const way = await requeueWay(database, EMAIL, { team_id: team.id, id: email.id })
  const forms = [
    ...requeueForms(way, here(request, 'requeue')),
    action(request, 'copy', {
      submit: 'Send a copy to me',
      tone: 'quiet',
    }),
    ...(team.role === 'owner'
      ? [
          action(request, 'delete', {
            submit: 'Delete',
            confirm: 'Delete this email for good?',
            tone: 'danger',
          }),
        ]
      : []),
  ]
  const note = 'A provider has taken it, so it is never sent again. Fix the cause, then send again.'
  return [{ kind: 'actions', forms, ...(email.status === 'bounced' && way === null ? { note } : {}) }]
}

/** Whether what an email holds may be seen at all: a sign-in link is its recipient's alone. */
const isSecret = ({ tags }: ShownEmail): boolean => tags.includes(SIGN_IN_TAG)

const headers = ({ headers: custom }: ShownEmail): Section[] =>
  custom === null
    ? []
    : [
        {
          kind: 'facts',
          title: 'Headers',
          facts: Object.entries(custom).map(([label, value]) => ({
            label,
            cell: text(value, { code: true }),
          })),
        },
      ]

/** What an email holds: its html in a frame of its own, its text, its headers. */
function content(email: ShownEmail, request: TeamRequest): Section[] {
  if (isSecret(email)) {
    const words = 'This email holds a sign-in link, which is for its recipient alone: it is not shown.'
    return [{ kind: 'text', title: 'Content', paragraphs: [words] }]
  }
  const pictures = request.query.get('pictures') === 'on'
  const path = request.path
  return [
    {
      kind: 'frame',
      title: 'HTML',
      note: pictures
        ? 'With pictures from elsewhere.'
        : 'Pictures from elsewhere are off: asking for them can tell the sender.',
      links: [
        pictures
          ? { href: path, label: 'Without pictures' }
          : { href: `${path}?pictures=on`, label: 'Show pictures' },
      ],
      src: here(request, `preview${pictures ? '-with-pictures' : ''}`),
    },
    ...(email.body_text === '' ? [] : [{ kind: 'code' as const, title: 'Text', code: email.body_text }]),
    ...headers(email),
  ]
}

/** Notes an operator's look into an email. */
const noteOpened = async (request: TeamRequest, deps: PageDeps, id: string): Promise<void> =>
  noteLook(request, deps, { action: 'email.open', subject: id })

const page: TeamPage = {
  method: 'GET',
  path: '/teams/:team/emails/:id',
  access: 'viewer',
  async handle(request, deps) {
    const { team } = request
    const email = await emailOf(request, deps)
    const alerts = waitingAlerts(email, request)
    const contacts = await contactsOf(email, request, deps)
    const link = { href: here(request, 'content'), label: 'Open what it holds' }
    const body: Section[] = team.member
      ? content(email, request)
      : [
          {
            kind: 'actions',
            title: 'Content',
            note: 'You are no member of this team: this view is noted in the audit trail.',
            links: [link],
          },
        ]
    return show({
      title: email.subject,
      back: { href: teamPath(team, 'emails'), label: 'Emails' },
      sections: [
        ...(alerts.length > 0
          ? [{ kind: 'alerts' as const, id: 'waiting', live: true, title: 'Why it waits', calm: '', alerts }]
          : []),
        facts(email, contacts, request),
        ...(await actions(email, request, deps)),
        ...suppressed(contacts, request),
        ...(email.to_emails.length > 1 ? [recipients(email, contacts, request)] : []),
        {
          kind: 'timeline',
          id: 'timeline',
          live: true,
          title: 'What happened',
          moments: momentsOf(email, request),
          empty: 'Nothing has happened yet.',
        },
        ...(isSecret(email) ? [] : filesTable(email, request)),
        ...body,
      ],
    })
  },
}

const opened: TeamPage = {
  method: 'GET',
  path: '/teams/:team/emails/:id/content',
  access: 'viewer',
  async handle(request, deps) {
    const email = await emailOf(request, deps)
    await noteOpened(request, deps, email.id)
    const back = { href: here(request), label: 'Back to the email' }
    return show({ title: email.subject, back, sections: content(email, request) })
  },
}

/** The html alone, for a frame. */
const preview = (pictures: boolean): TeamPage => ({
  method: 'GET',
  path: `/teams/:team/emails/:id/preview${pictures ? '-with-pictures' : ''}`,
  access: 'viewer',
  async handle(request, deps) {
    const email = await emailOf(request, deps)
    if (isSecret(email)) throw new Refusal('not_found', 'this email is not shown')
    await noteOpened(request, deps, email.id)
    return raw(frameHeaders(pictures), await withPictures(email, request, deps))
  },
})

const download: TeamPage = {
  method: 'GET',
  path: '/teams/:team/emails/:id/files/:place',
  access: 'viewer',
  async handle(request, deps) {
    const email = await emailOf(request, deps)
    if (isSecret(email)) throw new Refusal('not_found', 'this email is not shown')
    const file = fileAt(email, request.params.place ?? '')
    await noteLook(request, deps, { action: 'email.file', subject: `${email.id} ${file.filename}` })
    return fileAnswer(request, deps, file)
  },
}

const requeue: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/requeue',
  access: 'editor',
  async handle(request, deps) {
    return redirect(here(request), await requeueAsAsked(request, deps, EMAIL, 'email.requeue'))
  },
}

const copy: TeamPage = {
  method: 'POST',
  path: '/teams/:team/emails/:id/copy',
  access: 'editor',
  async handle(request, deps) {
    const { team, person } = request
    const email = await emailOf(request, deps)
    const from = parseMailbox(email.from_address)
    if (!from || isSecret(email)) throw new Refusal('bad_request', 'this email cannot be copied')
    await noteOpened(request, deps, email.id)
    const item = {
      path: '',
      from,
      to: [person.email],
      subject: email.subject,
      html: email.html,
      template_id: null,
      variables: null,
      text: email.body_text === '' ? null : email.body_text,
      headers: null,
      reply_to: '',
      tags: ['copy'],
      idempotency_key: null,
      ...(email.attachments
        ? { attachments: await reusedFiles(deps.database, team.id, email.attachments) }
        : {}),
    }
    await sendOwn(deps, team.id, item)
    return redirect(here(request), `A copy is on its way to ${person.email}.`)
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

export const emailPages = [page, opened, preview(false), preview(true), download, requeue, copy, remove]
