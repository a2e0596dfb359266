/** One broadcast: how it stands and why, its figures, what it lacks before it starts, and what can be done with it. */

import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { Refusal } from '../../../db/errors.ts'
import { FIGURES, type Figure } from '../../../db/figures/daily/broadcasts.sql.ts'
import { sendToRest } from '../../../db/messages/broadcasts/again.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import {
  broadcastOrRefusal,
  changeBroadcast,
  removeBroadcast,
} from '../../../db/messages/broadcasts/draft.ts'
import { readinessOf } from '../../../db/messages/broadcasts/readiness.ts'
import { restSize } from '../../../db/messages/broadcasts/rest.sql.ts'
import { sendTest } from '../../../db/messages/broadcasts/send-test.ts'
import {
  cancelBroadcast,
  pauseBroadcast,
  resumeBroadcast,
  sendBroadcast,
} from '../../../db/messages/broadcasts/start.ts'
import { type BroadcastView, broadcastView } from '../../../db/messages/broadcasts/view.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { parseMailbox } from '../../../db/text/address.ts'
import { type Cell, number, plural, text, time } from '../drawn/cell.ts'
import type { Form, Section } from '../drawn/section.ts'
import { act, inTeam } from '../served/act.ts'
import type { PageDeps } from '../served/deps.ts'
import { redirect, show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { conditionWords, draftFields, draftOf } from './broadcast-form.ts'
import { previewSections } from './broadcast-preview.ts'
import { choicesOf, progressWords, stateCell } from './broadcasts.ts'

const MOST_TESTS = 5

const here = ({ team, params }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'broadcasts', params.id ?? '', ...rest)

const actingOf = ({ team }: TeamRequest) => ({ team_id: team.id, domain: null })

/** Why a broadcast is paused when no person did it. */
const REASONS: Readonly<Record<string, string>> = {
  overdue: 'Its time had passed by more than an hour, so it did not begin by itself.',
  quota_exceeded: 'The quota is used up. It goes on from where it is once there is room.',
  bounces: 'Too many of its emails bounced. Look at the addresses before it goes on.',
  complaints: 'Too many people complained. Look at whom it goes to before it goes on.',
  restored: 'The database was restored from a backup: it may have sent more than is known here.',
  from_domain_not_verified: 'The domain of its From address is not verified.',
  no_audience: 'Nobody was in its audience when it was to begin.',
}

const percent = (part: number, of: number): string => `${of === 0 ? 0 : ((part * 100) / of).toFixed(2)} %`

/** What has become of the emails that have left. */
function outcomeWords({ made, queued, bounced, complained }: BroadcastView['figures']): string {
  const left = made - queued
  return `${plural(left, 'email')} sent, ${percent(bounced, left)} bounced, ${percent(complained, left)} complained`
}

const namesOf = (ids: readonly string[], names: ReadonlyMap<string, string>): string =>
  ids.map((id) => names.get(id) ?? id).join(', ')

function facts(view: BroadcastView, names: ReadonlyMap<string, string>, request: TeamRequest): Section {
  const { team, now } = request
  const fact = (label: string, cell: Cell) => ({ label, cell })
  const reason = view.state_reason === null ? '' : (REASONS[view.state_reason] ?? view.state_reason)
  return {
    kind: 'facts',
    id: 'facts',
    live: true,
    facts: [
      fact('State', { ...stateCell(view.state), ...(reason === '' ? {} : { detail: reason }) }),
      ...(view.audience === null ? [] : [fact('Progress', text(progressWords(view)))]),
      fact('Subject', text(view.subject)),
      fact('From', text(view.from)),
      fact(
        'Template',
        text(view.template_id, { code: true, href: teamPath(team, 'templates', view.template_id) }),
      ),
      fact('Topics', text(namesOf(view.topic_ids, names))),
      ...(view.exclude_topic_ids.length === 0
        ? []
        : [fact('But none of', text(namesOf(view.exclude_topic_ids, names)))]),
      ...(view.where.length === 0
        ? []
        : [fact('Conditions', text(view.where.map(conditionWords).join('; ')))]),
      ...(view.rate_per_minute === null
        ? []
        : [fact('Pace', text(`at most ${plural(view.rate_per_minute, 'email')} a minute`))]),
      ...(view.send_at === null ? [] : [fact('To begin', time(view.send_at, now))]),
      ...(view.started_at === null ? [] : [fact('Began', time(view.started_at, now))]),
      ...(view.ended_at === null ? [] : [fact('Ended', time(view.ended_at, now))]),
      fact('ID', text(view.id, { code: true, copy: true })),
    ],
  }
}

/** The figures, each with the list of its people. */
function figures(view: BroadcastView, request: TeamRequest): Section {
  const listOf = (figure: Figure): string => {
    if (figure === 'skipped') return here(request, 'skips')
    return figure === 'made' ? here(request, 'people') : `${here(request, 'people')}?status=${figure}`
  }
  return {
    kind: 'tiles',
    id: 'figures',
    title: 'Figures',
    live: true,
    tiles: [
      { label: 'Audience', value: number(view.audience ?? 0).text },
      ...FIGURES.map((figure) => ({
        label: figure === 'made' ? 'Emails' : `${figure[0]?.toUpperCase()}${figure.slice(1)}`,
        value: number(view.figures[figure]).text,
        href: listOf(figure),
      })),
    ],
  }
}

const form = (request: TeamRequest, verb: string, more: Partial<Form> & { submit: string }): Form => ({
  action: here(request, verb),
  method: 'post',
  fields: [],
  ...more,
})

/** What a draft would do, and what keeps it from starting. */
async function draftSections(
  row: BroadcastRow,
  names: ReadonlyMap<string, string>,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> {
  const ready = await readinessOf(deps.database, row, deps.publicUrl)
  const audience = ready.audience === null ? 'very many contacts' : plural(ready.audience, 'contact')
  const lacking: Section[] =
    ready.lacking === 0
      ? []
      : [
          {
            kind: 'text',
            paragraphs: [
              `${plural(ready.lacking, 'contact')} would be skipped: no value for one of ${ready.slots.join(', ')}.`,
            ],
          },
        ]
  const later = row.send_at !== null
  const topics = namesOf(row.topic_ids, names)
  const start = form(request, 'send', {
    submit: later ? 'Schedule' : 'Send now',
    confirm: `${later ? 'Schedule' : 'Send'} “${row.name}” to ${audience} of ${topics}?`,
  })
  const remove = form(request, 'delete', {
    submit: 'Delete the draft',
    tone: 'danger',
    confirm: `Delete the draft “${row.name}”?`,
  })
  const edits = request.team.role !== 'viewer'
  return [
    {
      kind: 'tiles',
      title: 'Audience',
      tiles: [
        { label: 'Contacts', value: ready.audience === null ? 'very many' : number(ready.audience).text },
        { label: 'Lack a variable', value: number(ready.lacking).text },
      ],
    },
    ...lacking,
    {
      kind: 'alerts',
      title: 'Before it can start',
      calm: 'Nothing is missing.',
      alerts: ready.missing.map((words) => ({ tone: 'bad' as const, title: words })),
    },
    ...(edits ? [{ kind: 'actions' as const, forms: [start, remove] }] : []),
  ]
}

/** What can be done with one that is no draft any more. */
function actions(view: BroadcastView, request: TeamRequest): Section[] {
  if (request.team.role === 'viewer') return []
  const { name, state, figures: counted, audience } = view
  const left = Math.max(0, (audience ?? 0) - counted.made - counted.skipped) + counted.queued
  const rest = audience === null ? 'its audience' : `the ${plural(left, 'contact')} that are left`
  const pause = form(request, 'pause', {
    submit: 'Pause',
    tone: 'quiet',
    confirm: `Pause “${name}”, with ${rest} still to go?`,
  })
  const resume = form(request, 'resume', {
    submit: 'Go on',
    confirm: `Go on with “${name}” to ${rest}? So far: ${outcomeWords(counted)}.`,
  })
  const cancel = form(request, 'cancel', {
    submit: 'Cancel it',
    tone: 'danger',
    confirm: `Cancel “${name}” for good? It will not go to ${rest}.`,
  })
  const forms = {
    sending: [pause, cancel],
    paused: [resume, cancel],
    scheduled: [cancel],
    draft: [],
    sent: [],
    cancelled: [],
  }[state]
  const ended = (state === 'sent' || state === 'cancelled') && audience !== null
  const links = ended ? [{ href: here(request, 'again'), label: 'Send to those it has not gone to yet' }] : []
  return forms.length + links.length === 0 ? [] : [{ kind: 'actions', forms, links }]
}

const testForm = (request: TeamRequest): Section => ({
  kind: 'form',
  title: 'Test',
  note: `Sends it as one contact would get it to at most ${MOST_TESTS} addresses. It counts in no figure of the broadcast.`,
  action: here(request, 'test'),
  method: 'post',
  submit: 'Send a test',
  fields: [
    {
      name: 'to',
      label: 'To, separated by commas',
      type: 'text',
      required: true,
      value: request.person.email,
    },
    {
      name: 'contact',
      label: 'As this contact (may be empty)',
      type: 'text',
      value: request.query.get('contact') ?? '',
      hint: 'The address of a contact, whose properties fill the variables.',
    },
  ],
})

const page: TeamPage = {
  method: 'GET',
  path: '/teams/:team/broadcasts/:id',
  access: 'viewer',
  async handle(request, deps) {
    const { team, params } = request
    const row = await broadcastOrRefusal(deps.database, team.id, params.id ?? '')
    const view = await broadcastView(deps.database, row)
    const names = new Map((await topicsOfTeam(deps.database, team.id)).map(({ id, name }) => [id, name]))
    const isDraft = row.state === 'draft'
    const edits = team.role !== 'viewer'
    const edit: Section[] =
      isDraft && edits
        ? [
            {
              kind: 'form',
              folded: true,
              action: here(request, 'edit'),
              method: 'post',
              submit: 'Change the draft',
              fields: draftFields(await choicesOf(team, deps), row),
            },
          ]
        : []
    return show({
      title: row.name,
      back: { href: teamPath(team, 'broadcasts'), label: 'Broadcasts' },
      sections: [
        facts(view, names, request),
        ...(isDraft ? await draftSections(row, names, request, deps) : [figures(view, request)]),
        ...(isDraft ? [] : actions(view, request)),
        ...edit,
        ...(await previewSections(row, request, deps)),
        ...(edits ? [testForm(request)] : []),
      ],
    })
  },
}

const edit: TeamPage = {
  method: 'POST',
  path: '/teams/:team/broadcasts/:id/edit',
  access: 'editor',
  async handle(request, deps) {
    const fields = draftOf(request.form)
    const id = request.params.id ?? ''
    await act(request, deps, inTeam(request, 'broadcast.change', id), (at) =>
      changeBroadcast(at, actingOf(request), id, fields),
    )
    return redirect(here(request), 'The draft is saved.')
  },
}

const remove: TeamPage = {
  method: 'POST',
  path: '/teams/:team/broadcasts/:id/delete',
  access: 'editor',
  async handle(request, deps) {
    const id = request.params.id ?? ''
    const { name } = await act(request, deps, inTeam(request, 'broadcast.delete', id), (at) =>
      removeBroadcast(at, actingOf(request), id),
    )
    return redirect(teamPath(request.team, 'broadcasts'), `The draft ${name} is deleted.`)
  },
}

/** A button that changes the state. */
const stateButton = (
  verb: string,
  done: string,
  change: (deps: PageDeps & { tx: Tx }, request: TeamRequest, id: string) => Promise<BroadcastRow>,
): TeamPage => ({
  method: 'POST',
  path: `/teams/:team/broadcasts/:id/${verb}`,
  access: 'editor',
  async handle(request, deps) {
    const id = request.params.id ?? ''
    const row = await act(request, deps, inTeam(request, `broadcast.${verb}`, id), ({ tx }) =>
      change({ ...deps, tx }, request, id),
    )
    deps.wake('expand-broadcast')
    deps.wake('deliver-broadcast')
    return redirect(here(request), `${row.name} ${row.state === 'scheduled' ? 'is scheduled' : done}.`)
  },
})

/** The addresses that were typed. @throws Refusal bad_request. */
function addressesOf(typed: string): string[] {
  const to = typed.split(/[,;\s]+/).filter((each) => each !== '')
  const odd = to.find((each) => parseMailbox(each) === null)
  if (odd !== undefined) throw new Refusal('bad_request', `${JSON.stringify(odd)} is not an email address`)
  if (to.length > 0 && to.length <= MOST_TESTS) return to
  throw new Refusal('bad_request', `name 1 to ${MOST_TESTS} addresses`)
}

const test: TeamPage = {
  method: 'POST',
  path: '/teams/:team/broadcasts/:id/test',
  access: 'editor',
  async handle(request, deps) {
    const id = request.params.id ?? ''
    const to = addressesOf(request.form.get('to') ?? '')
    const contact = request.form.get('contact')?.trim() || undefined
    await act(
      request,
      deps,
      inTeam(request, 'broadcast.test', id, plural(to.length, 'address', 'addresses')),
      ({ tx }) => sendTest({ ...deps, tx }, actingOf(request), id, { to, contact }),
    )
    deps.wake('deliver-email')
    return redirect(here(request), 'A test is on its way.')
  },
}

/** Whom one that has ended has not gone to yet: counted here alone, since that may take seconds. */
const again: TeamPage = {
  method: 'GET',
  path: '/teams/:team/broadcasts/:id/again',
  access: 'editor',
  async handle(request, { database }) {
    const row = await broadcastOrRefusal(database, request.team.id, request.params.id ?? '')
    const rest = plural(await restSize(database, row), 'contact')
    return show({
      title: `Send “${row.name}” to those it has not gone to yet`,
      lead: `${rest} fit now and have no email of it. Nobody gets it twice.`,
      back: { href: here(request), label: row.name },
      sections: [
        {
          kind: 'actions',
          forms: [form(request, 'again', { submit: 'Send', confirm: `Send “${row.name}” to ${rest} more?` })],
        },
      ],
    })
  },
}

export const broadcastPages = [
  again,
  page,
  edit,
  remove,
  stateButton('send', 'is being sent', (deps, request, id) => sendBroadcast(deps, actingOf(request), id)),
  stateButton('pause', 'is paused', (deps, request, id) => pauseBroadcast(deps, actingOf(request), id)),
  stateButton('resume', 'goes on', (deps, request, id) => resumeBroadcast(deps, actingOf(request), id)),
  stateButton('cancel', 'is cancelled', (deps, request, id) => cancelBroadcast(deps, actingOf(request), id)),
  stateButton('again', 'is being sent', (deps, request, id) => sendToRest(deps, actingOf(request), id)),
  test,
]
