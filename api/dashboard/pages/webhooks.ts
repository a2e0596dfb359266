/** The team's own servers that get its events: made, changed, tested; their messages, each try, and replays. */
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { ALL_TYPES, WEBHOOK_TYPES } from '../../../db/channels/happenings/webhook-types.ts'
import { Refusal } from '../../../db/errors.ts'
import type { EndpointRow } from '../../../db/messages/webhooks/endpoints.sql.ts'
import {
  addEndpoint,
  changeEndpoint,
  disableEndpoint,
  type EndpointFields,
  enableEndpoint,
  listEndpoints,
  removeEndpoint,
  replayEndpoint,
  rotateSecret,
  type ShownEndpoint,
  showEndpoint,
  testEndpoint,
} from '../../../db/messages/webhooks/endpoints.ts'
import { webhookByEvent } from '../../../db/messages/webhooks/messages.sql.ts'
import { type Cell, number, status, text, time } from '../drawn/cell.ts'
import type { Field, Form, Section } from '../drawn/section.ts'
import { inPerson, noteLook } from '../served/act.ts'
import { dayOf } from '../served/list.ts'
import { redirect, show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'

const PATH = '/teams/:team/webhooks'

const stateCell = ({ state, failing_since, paused_until }: EndpointRow): Cell => {
  if (state === 'disabled') return { text: 'disabled', tone: 'bad' }
  if (paused_until !== null) return { text: 'asks to wait', tone: 'warn' }
  return failing_since === null ? { text: 'enabled', tone: 'good' } : { text: 'failing', tone: 'warn' }
}

const typeWords = (types: readonly string[]): string =>
  types.includes(ALL_TYPES) ? 'everything' : types.join(', ')

/** The fields of an endpoint, filled with what it has. */
function fieldsFor(domains: readonly string[], endpoint: EndpointRow | null): Field[] {
  const types = endpoint?.types ?? [ALL_TYPES]
  // A domain that was removed stays chosen: saving the rest must not widen the endpoint to all.
  const choices = new Set([...domains, ...(endpoint?.domain ? [endpoint.domain] : [])])
  return [
    {
      name: 'url',
      label: 'URL',
      type: 'text',
      required: true,
      value: endpoint?.url ?? '',
      placeholder: 'https://example.com/webhooks',
    },
    { name: 'name', label: 'Name', type: 'text', value: endpoint?.name ?? '' },
    {
      name: 'types',
      label: 'Events',
      type: 'checks',
      options: [ALL_TYPES, ...WEBHOOK_TYPES].map((type) => ({
        value: type,
        label: type === ALL_TYPES ? 'everything' : type,
        selected: types.includes(type),
      })),
    },
    {
      name: 'domain',
      label: 'Domain',
      type: 'select',
      options: [
        { value: '', label: 'all emails, messages and contacts' },
        ...[...choices].map((name) => ({
          value: name,
          label: `only emails from ${name}`,
          selected: name === endpoint?.domain,
        })),
      ],
    },
  ]
}

const given = (form: URLSearchParams): EndpointFields & { url: string } => ({
  url: (form.get('url') ?? '').trim(),
  ...(form.get('name')?.trim() ? { name: form.get('name')?.trim() } : {}),
  types: form.getAll('types'),
  domain: form.get('domain') || null,
})

const list: TeamPage = {
  method: 'GET',
  path: PATH,
  access: 'viewer',
  async handle({ team, now }, { database }) {
    const endpoints = await listEndpoints(database, team.id)
    const domains = (await domainsOfTeam(database, team.id)).map(({ name }) => name)
    const labels = ['State', 'Name', 'Events', 'Last success']
    return show({
      title: 'Webhooks',
      lead: 'Your own servers get what becomes of emails, WhatsApp messages and contacts, as it happens.',
      sections: [
        {
          kind: 'table',
          id: 'webhooks',
          live: true,
          columns: [...labels.map((label) => ({ label })), { label: 'Waiting', number: true }],
          rows: endpoints.map((endpoint) => ({
            cells: [
              stateCell(endpoint),
              text(endpoint.name, { href: teamPath(team, 'webhooks', endpoint.id), detail: endpoint.url }),
              text(typeWords(endpoint.types)),
              time(endpoint.last_success_at, now),
              number(endpoint.backlog),
            ],
          })),
          empty: 'No webhooks yet: add one below. The documentation shows how a server checks what it gets.',
        },
        ...(team.role === 'owner'
          ? [
              {
                kind: 'form' as const,
                title: 'New webhook',
                action: teamPath(team, 'webhooks'),
                method: 'post' as const,
                submit: 'Add a webhook',
                fields: fieldsFor(domains, null),
              },
            ]
          : []),
      ],
    })
  },
}

const create: TeamPage = {
  method: 'POST',
  path: PATH,
  access: 'owner',
  async handle(request, deps) {
    const { secret, id, name } = await inPerson(request, deps, (by) =>
      addEndpoint(
        { ...by, secrets: deps.secrets, allowed: deps.webhookNetworks },
        request.team.id,
        given(request.form),
      ),
    )
    const words = `The secret of ${name}. Copy it now: it is not shown again.`
    return redirect(teamPath(request.team, 'webhooks', id), { tone: 'good', text: words, secret })
  },
}

/** What an owner can do with an endpoint as it is. */
function actionsFor({ team }: TeamRequest, { id, state, name }: EndpointRow): Section {
  const form = (verb: string, submit: string, more: Partial<Form> = {}): Form => ({
    action: teamPath(team, 'webhooks', id, verb),
    method: 'post',
    fields: [],
    submit,
    ...more,
  })
  const forms =
    state === 'enabled'
      ? [
          form('test', 'Send a test'),
          form('disable', 'Disable', {
            tone: 'danger',
            confirm: `Send ${name} nothing more? What waits for it fails, and can be sent again later.`,
          }),
        ]
      : [form('enable', 'Enable')]
  return {
    kind: 'actions',
    forms: [
      ...forms,
      form('rotate', 'New secret', {
        tone: 'quiet',
        confirm: `Make a new secret for ${name}? The old one signs too for 24 hours.`,
      }),
      form('remove', 'Remove', { tone: 'danger', confirm: `Remove ${name}, and all messages to it?` }),
    ],
  }
}

const replayForm = ({ team }: TeamRequest, { id }: EndpointRow): Section => ({
  kind: 'form',
  title: 'Send again',
  note: 'The same ids and the same bytes. Delivered webhooks are kept for 3 days, failed ones for 30.',
  action: teamPath(team, 'webhooks', id, 'replay'),
  method: 'post',
  submit: 'Send again',
  folded: true,
  fields: [
    { name: 'from', label: 'First day (UTC); empty for all', type: 'date' },
    { name: 'to', label: 'Last day (UTC)', type: 'date' },
    {
      name: 'type',
      label: 'Type',
      type: 'select',
      options: [{ value: '', label: 'all' }, ...WEBHOOK_TYPES.map((type) => ({ value: type, label: type }))],
    },
    {
      name: 'failed',
      label: '',
      type: 'checks',
      options: [{ value: 'yes', label: 'only what failed', selected: true }],
    },
  ],
})

const triesOf = ({ team, now }: TeamRequest, { id, attempts }: ShownEndpoint): Section => ({
  kind: 'table',
  title: 'Recent tries',
  id: 'tries',
  live: true,
  columns: [
    ...['At', 'Type', 'Answer', 'What came back'].map((label) => ({ label })),
    { label: 'ms', number: true },
  ],
  rows: attempts.map((each) => ({
    cells: [
      time(each.at, now),
      text(each.type, { href: teamPath(team, 'webhooks', id, 'events', each.event_id) }),
      answerCell(each.status),
      text(each.response, { code: true }),
      number(each.ms),
    ],
  })),
  empty: 'Nothing was sent so far.',
})

const answerCell = (code: number | null): Cell =>
  code === null
    ? { text: 'no answer', tone: 'bad' }
    : { text: String(code), tone: code >= 200 && code <= 299 ? 'good' : 'bad' }

const page: TeamPage = {
  method: 'GET',
  path: `${PATH}/:id`,
  access: 'viewer',
  async handle(request, { database }) {
    const { team, params, now } = request
    const endpoint = await showEndpoint(database, team.id, params.id ?? '')
    const domains = (await domainsOfTeam(database, team.id)).map(({ name }) => name)
    const isOwner = team.role === 'owner'
    const { state_reason: reason } = endpoint
    return show({
      title: endpoint.name,
      lead: endpoint.url,
      back: { href: teamPath(team, 'webhooks'), label: 'Webhooks' },
      sections: [
        {
          kind: 'facts',
          live: true,
          facts: [
            { label: 'State', cell: { ...stateCell(endpoint), ...(reason ? { detail: reason } : {}) } },
            { label: 'Events', cell: text(typeWords(endpoint.types)) },
            { label: 'Domain', cell: text(endpoint.domain ?? 'any') },
            { label: 'Waiting', cell: number(endpoint.backlog) },
            { label: 'Last success', cell: time(endpoint.last_success_at, now) },
            { label: 'Failing since', cell: time(endpoint.failing_since, now, 'it is not') },
            ...(endpoint.paused_until === null
              ? []
              : [{ label: 'Asks to wait until', cell: time(endpoint.paused_until, now) }]),
            { label: 'ID', cell: text(endpoint.id, { code: true, copy: true }) },
          ],
        },
        ...(isOwner ? [actionsFor(request, endpoint)] : []),
        triesOf(request, endpoint),
        ...(isOwner
          ? [
              ...(endpoint.state === 'enabled' ? [replayForm(request, endpoint)] : []),
              {
                kind: 'form' as const,
                title: 'Change',
                folded: true,
                action: teamPath(team, 'webhooks', endpoint.id, 'set'),
                method: 'post' as const,
                submit: 'Save',
                fields: fieldsFor(domains, endpoint),
              },
            ]
          : []),
      ],
    })
  },
}

const eventPage: TeamPage = {
  method: 'GET',
  path: `${PATH}/:id/events/:event_id`,
  access: 'viewer',
  async handle(request, { database }) {
    const { team, params, now } = request
    const { id = '', event_id = '' } = params
    const found = await webhookByEvent(database, team.id, { endpoint_id: id, event_id })
    if (!found)
      throw new Refusal('not_found', 'there is no such webhook: perhaps it was kept for long enough')
    await noteLook(request, { database }, { action: 'webhook.read', subject: event_id })
    return show({
      title: found.type,
      back: { href: teamPath(team, 'webhooks', id), label: 'Webhook' },
      sections: [
        {
          kind: 'facts',
          facts: [
            { label: 'State', cell: status(found.status) },
            { label: 'webhook-id', cell: text(event_id, { code: true, copy: true }) },
            { label: 'Made', cell: time(found.created_at, now) },
          ],
        },
        { kind: 'code', title: 'Body', code: JSON.stringify(JSON.parse(found.body), null, 2) },
      ],
    })
  },
}

type Act = (request: TeamRequest, deps: Parameters<TeamPage['handle']>[1], id: string) => Promise<string>

/** A page that does one thing to an endpoint, says so, and goes back to it. */
const acting = (verb: string, act: Act): TeamPage => ({
  method: 'POST',
  path: `${PATH}/:id/${verb}`,
  access: 'owner',
  async handle(request, deps) {
    const id = request.params.id ?? ''
    const words = await act(request, deps, id)
    return redirect(teamPath(request.team, 'webhooks', id), words)
  },
})

const set = acting('set', async (request, deps, id) => {
  await inPerson(request, deps, (by) =>
    changeEndpoint({ ...by, allowed: deps.webhookNetworks }, request.team.id, id, given(request.form)),
  )
  return 'It is saved.'
})

const test = acting('test', async (request, deps, id) => {
  await inPerson(request, deps, (by) => testEndpoint(by, request.team.id, id))
  deps.wake('deliver-webhook')
  return 'A test is on its way: what comes back is listed below.'
})

const enable = acting('enable', async (request, deps, id) => {
  await inPerson(request, deps, (by) => enableEndpoint(by, request.team.id, id))
  return 'It gets events from now on. What failed before can be sent again below.'
})

const disable = acting('disable', async (request, deps, id) => {
  await inPerson(request, deps, (by) => disableEndpoint(by, request.team.id, id))
  return 'It gets nothing more.'
})

const replay = acting('replay', async (request, deps, id) => {
  const { form, team } = request
  const filter = {
    from: dayOf(form, 'from'),
    to: dayOf(form, 'to', 1),
    type: form.get('type') || undefined,
    failed: form.get('failed') === 'yes',
  }
  const count = await inPerson(request, deps, (by) =>
    replayEndpoint({ ...by, queue: deps.queue }, team.id, id, filter),
  )
  deps.wake('deliver-webhook')
  return `${count.toLocaleString('en-US')} on their way once more.`
})

const rotate: TeamPage = {
  method: 'POST',
  path: `${PATH}/:id/rotate`,
  access: 'owner',
  async handle(request, deps) {
    const id = request.params.id ?? ''
    const { secret } = await inPerson(request, deps, (by) =>
      rotateSecret({ ...by, secrets: deps.secrets }, request.team.id, id),
    )
    const words = 'The new secret. Copy it now: it is not shown again. The old one signs too for 24 hours.'
    return redirect(teamPath(request.team, 'webhooks', id), { tone: 'good', text: words, secret })
  },
}

const remove: TeamPage = {
  method: 'POST',
  path: `${PATH}/:id/remove`,
  access: 'owner',
  async handle(request, deps) {
    const { name } = await inPerson(request, deps, (by) =>
      removeEndpoint(by, request.team.id, request.params.id ?? ''),
    )
    return redirect(teamPath(request.team, 'webhooks'), `${name} is removed.`)
  },
}

export const webhooksPages = [
  ...[list, create, page, eventPage],
  ...[set, test, enable, disable, replay, rotate, remove],
]
