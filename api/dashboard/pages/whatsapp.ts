/** A team's WhatsApp messages: the list with its filter, and one message with what became of it. */
import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { WHATSAPP_LADDER } from '../../../db/channels/whatsapp.ts'
import { requeueWay } from '../../../db/delivery/requeue.ts'
import { Refusal } from '../../../db/errors.ts'
import { type MessageFilter, messagesFound } from '../../../db/messages/whatsapp/find.sql.ts'
import { type ShownMessage, showMessage } from '../../../db/messages/whatsapp/show.ts'
import { templatesOfTeam, type WhatsappTemplateRow } from '../../../db/messages/whatsapp/templates.sql.ts'
import { normalisePhone } from '../../../db/text/phone.ts'
import { status, text, time } from '../drawn/cell.ts'
import type { Field, Section } from '../drawn/section.ts'
import { waitingAlerts } from '../drawn/story.ts'
import { messageMoments } from '../drawn/whatsapp-story.ts'
import { noteLook } from '../served/act.ts'
import {
  anyOf,
  backTo,
  dayOf,
  filled,
  fromList,
  given,
  idGiven,
  PAGE_SIZE,
  pageOf,
  wordGiven,
} from '../served/list.ts'
import { redirect, show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { requeueAsAsked, requeueForms } from './requeue.ts'

/** The filter that the address holds. @throws Refusal bad_request. */
function filterOf(query: URLSearchParams): MessageFilter {
  const number = given(query, 'recipient')
  const phone = number === undefined ? null : normalisePhone(number)
  if (number !== undefined && phone === null)
    throw new Refusal('bad_request', 'recipient must be a number, such as +15551234567')
  return {
    recipients: phone ? [phone.e164] : undefined,
    id: given(query, 'id'),
    status: wordGiven(query, 'status', WHATSAPP_LADDER),
    template_id: idGiven(query, 'template'),
    from: dayOf(query, 'from'),
    to: dayOf(query, 'to', 1),
  }
}

const fieldsOf = (templates: readonly WhatsappTemplateRow[]): Field[] => [
  { name: 'recipient', label: 'Number', type: 'search', placeholder: '+15551234567' },
  { name: 'id', label: 'Message, request or idempotency ID', type: 'search' },
  { name: 'status', label: 'Status', type: 'select', options: anyOf(WHATSAPP_LADDER) },
  {
    name: 'template',
    label: 'Template',
    type: 'select',
    options: [
      ...anyOf([]),
      ...templates.map(({ id, name, language }) => ({ value: id, label: `${name} (${language})` })),
    ],
  },
  { name: 'from', label: 'From day (UTC)', type: 'date' },
  { name: 'to', label: 'To day', type: 'date' },
]

const list: TeamPage = {
  method: 'GET',
  path: '/teams/:team/whatsapp',
  access: 'viewer',
  lags: true,
  async handle(request, { database }) {
    const { team, query, now } = request
    const templates = await templatesOfTeam(database, team.id)
    const names = new Map(templates.map(({ id, name }) => [id, name]))
    const page = { before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
    const found = await messagesFound(database, team.id, filterOf(query), page)
    const { rows, next } = pageOf(request, found, ({ id }) => id)
    const here = teamPath(team, 'whatsapp')
    return show({
      title: 'WhatsApp',
      sections: [
        {
          kind: 'filter',
          action: here,
          method: 'get',
          fields: filled(fieldsOf(templates), query),
          submit: 'Find',
          reset: query.size > 0 ? { href: here, label: 'Clear' } : null,
        },
        {
          kind: 'table',
          id: 'list',
          live: !query.has('before'),
          fresh: true,
          columns: ['Status', 'To', 'Template', 'Country', 'Accepted'].map((label) => ({ label })),
          rows: rows.map((message) => ({
            key: message.id,
            cells: [
              status(message.status),
              text(message.recipient, {
                href: fromList(request, teamPath(team, 'whatsapp', message.id)),
              }),
              text(names.get(message.template_id) ?? message.template_id),
              text(message.country),
              time(message.created_at, now),
            ],
          })),
          next,
          empty: query.size > 0 ? 'No message matches.' : 'No messages yet. Send the first one with the API.',
        },
      ],
    })
  },
}

const filling = ({ parameters }: Pick<ShownMessage, 'parameters'>): Section[] =>
  Object.keys(parameters).length === 0
    ? []
    : [
        {
          kind: 'facts',
          title: 'Parameters',
          facts: Object.entries(parameters).map(([label, value]) => ({ label, cell: text(value) })),
        },
      ]

/** What a message is filled with; an operator of another team opens it on a page of its own. */
function parametersOf(message: ShownMessage, { team }: TeamRequest): Section[] {
  if (team.member || filling(message).length === 0) return filling(message)
  const href = teamPath(team, 'whatsapp', message.id, 'content')
  const note = 'You are no member of this team: this view is noted in the audit trail.'
  return [{ kind: 'actions', title: 'Parameters', note, links: [{ href, label: 'Open what it holds' }] }]
}

const opened: TeamPage = {
  method: 'GET',
  path: '/teams/:team/whatsapp/:id/content',
  access: 'viewer',
  async handle(request, deps) {
    const { team, params, now } = request
    const message = await showMessage({ tx: deps.database, now }, team.id, params.id ?? '')
    await noteLook(request, deps, { action: 'whatsapp.open', subject: message.id })
    const back = { href: teamPath(team, 'whatsapp', message.id), label: 'Back to the message' }
    return show({ title: `To ${message.to}`, back, sections: filling(message) })
  },
}

const message: TeamPage = {
  method: 'GET',
  path: '/teams/:team/whatsapp/:id',
  access: 'viewer',
  async handle(request, { database }) {
    const { team, params, now } = request
    const row = await showMessage({ tx: database, now }, team.id, params.id ?? '')
    const template = (await templatesOfTeam(database, team.id)).find(({ id }) => id === row.template_id)
    const alerts = waitingAlerts(row, request)
    const way =
      team.role === 'viewer' ? null : await requeueWay(database, WHATSAPP, { team_id: team.id, id: row.id })
    const forms = requeueForms(way, teamPath(team, 'whatsapp', row.id, 'requeue'))
    const sections: Section[] = [
      ...(alerts.length > 0
        ? [{ kind: 'alerts' as const, id: 'waiting', live: true, title: 'Why it waits', calm: '', alerts }]
        : []),
      {
        kind: 'facts',
        id: 'facts',
        live: true,
        facts: [
          { label: 'Status', cell: status(row.status) },
          { label: 'To', cell: text(row.to, { copy: true }) },
          { label: 'Country', cell: text(row.country) },
          {
            label: 'Template',
            cell: text(template ? `${template.name} (${template.language})` : row.template_id, {
              href: teamPath(team, 'whatsapp-templates', row.template_id),
            }),
          },
          { label: 'Accepted', cell: time(row.created_at, now) },
          ...(row.requeued_at ? [{ label: 'Requeued', cell: time(row.requeued_at, now) }] : []),
          { label: 'ID', cell: text(row.id, { code: true, copy: true }) },
          { label: 'Request ID', cell: text(row.http_request_id) },
          { label: 'Idempotency key', cell: text(row.idempotency_key) },
          { label: 'Provider ID', cell: text(row.provider_message_id) },
        ],
      },
      ...(forms.length === 0 ? [] : [{ kind: 'actions' as const, forms }]),
      {
        kind: 'timeline',
        id: 'timeline',
        live: true,
        title: 'What happened',
        moments: messageMoments(row, request),
        empty: 'Nothing has happened yet.',
      },
      ...parametersOf(row, request),
    ]
    return show({
      title: `To ${row.to}`,
      back: backTo(request, teamPath(team, 'whatsapp'), 'WhatsApp'),
      sections,
    })
  },
}

const requeue: TeamPage = {
  method: 'POST',
  path: '/teams/:team/whatsapp/:id/requeue',
  access: 'editor',
  async handle(request, deps) {
    const said = await requeueAsAsked(request, deps, WHATSAPP, 'whatsapp.requeue')
    return redirect(teamPath(request.team, 'whatsapp', request.params.id ?? ''), said)
  },
}

export const whatsappPages = [list, message, opened, requeue]
