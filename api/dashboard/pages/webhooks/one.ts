/** One webhook: how it stands, its latest tries, and what an owner can do with it. */
import { domainsOfTeam } from '../../../../db/accounts/domains/domains.sql.ts'
import type { EndpointRow } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import { type ShownEndpoint, showEndpoint } from '../../../../db/messages/webhooks/endpoints.ts'
import { REPLAYED } from '../../../../db/messages/webhooks/listing.sql.ts'
import { number, text, time } from '../../drawn/cell.ts'
import type { Form, Section } from '../../drawn/section.ts'
import { show, type TeamPage, type TeamRequest, teamPath } from '../../served/page.ts'
import { answerCell, EVERY_TYPE, fieldsFor, PATH, stateCell, typeWords } from './parts.ts'

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

const WHICH: Readonly<Record<(typeof REPLAYED)[number], string>> = {
  failed: 'what failed',
  over: 'all that was sent, or failed',
  waiting: 'what waits for its next try, now',
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
      options: [{ value: '', label: 'all' }, ...EVERY_TYPE.map((type) => ({ value: type, label: type }))],
    },
    {
      name: 'what',
      label: 'Which',
      type: 'select',
      options: REPLAYED.map((what) => ({ value: what, label: WHICH[what] })),
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
        {
          kind: 'actions',
          links: [{ href: teamPath(team, 'webhooks', endpoint.id, 'messages'), label: 'All its messages' }],
        },
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

export const webhookPages = [page]
