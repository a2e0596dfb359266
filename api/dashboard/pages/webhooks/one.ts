/** The page of a webhook: its state, its latest attempts, and actions for owners. */

import { domainsOfTeam } from '../../../../db/accounts/domains/domains.sql.ts'
import { KEPT_DAYS } from '../../../../db/channels/events/webhooks.sql.ts'
import { type EndpointRow, secretMark } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import { BY_HAND, type ShownEndpoint, showEndpoint } from '../../../../db/messages/webhooks/endpoints.ts'
import { DISABLE_AFTER_MS } from '../../../../db/messages/webhooks/ends.ts'
import {
  type AttemptRow,
  type OutcomeRow,
  REPLAYED,
  readOutcomes,
} from '../../../../db/messages/webhooks/listing.sql.ts'
import { plural } from '../../../../db/plural.ts'
import { countdown, dayWords, text, time } from '../../components/cell.ts'
import { percent } from '../../components/percent.ts'
import type { Actions, Alert, Section } from '../../components/section.ts'
import { parseZone } from '../../components/zone.ts'
import {
  buildAlerts,
  buildFacts,
  buildForm,
  buildTable,
  button,
  compact,
  field,
  get,
  hidden,
} from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { dayLabel } from '../../server/filter.ts'
import { show, type TeamRequest, teamPath } from '../../server/page.ts'
import { describeEnd } from './listed.ts'
import {
  answerCell,
  endpointStateCell,
  fieldsFor,
  PATH,
  REPLAY_LABELS,
  shortAnswer,
  typeOptions,
  typeWords,
} from './parts.ts'

/** Maximum number of attempts listed. The pages of the events have all. */
const TRIES_SHOWN = 15

async function actionsFor(
  { team }: TeamRequest,
  { database }: PageDeps,
  { id, state, failing_since, attempts }: ShownEndpoint,
): Promise<Actions> {
  if (team.role !== 'owner') return {}
  const seen = await secretMark(database, team.id, id)
  const at = (verb: string): string => teamPath(team, 'webhooks', id, verb)
  const forms =
    state === 'enabled'
      ? [
          // A webhook that works needs no test.
          button(at('test'), 'Send a test', failing_since || attempts.length === 0 ? {} : { tone: 'quiet' }),
          button(at('disable'), 'Disable webhook', { tone: 'danger' }),
        ]
      : [button(at('enable'), 'Enable webhook')]
  return {
    forms: [
      ...forms,
      button(at('rotate'), 'Create a new secret', {
        fields: [hidden('seen', seen, true)],
        tone: 'quiet',
        menu: true,
      }),
      button(at('remove'), 'Remove webhook', { tone: 'danger' }),
    ],
  }
}

export const replayForm = ({ team, cookies }: TeamRequest, { id }: EndpointRow): Section =>
  buildForm(teamPath(team, 'webhooks', id, 'replay'), 'Continue', {
    title: 'Send events again',
    note: 'With the same IDs and bodies. Delivered events are kept for 3 days, failed ones for 30.',
    folded: 'quiet',
    fields: [
      field('from', dayLabel('First day', parseZone(cookies('zone'))), {
        type: 'date',
        hint: 'Leave it empty for all.',
      }),
      field('to', dayLabel('Last day', parseZone(cookies('zone'))), { type: 'date' }),
      field('type', 'Event', { type: 'select', options: typeOptions('all') }),
      field('what', 'Which', {
        type: 'select',
        options: REPLAYED.map((what) => ({ value: what, label: REPLAY_LABELS[what] })),
      }),
    ],
  })

/** Tells if the event of a failed attempt was retried or delivered later. @param outcome of its last attempt. */
function laterWords({ status, message_status }: AttemptRow, outcome: OutcomeRow | undefined) {
  if (answerCell(status).tone === 'good') return undefined
  const failed = outcome ? describeEnd(outcome) : 'retried later'
  return { queued: 'retried later', failed, delivered: 'delivered later' }[message_status]
}

/** Describes how reliable the webhook is. The time of the last success is `noteAt`. */
function successNote(
  { attempts, last_success_at: last }: ShownEndpoint,
  now: Date,
): Pick<Section, 'note' | 'noteAt'> {
  const good = attempts.filter(({ status }) => answerCell(status).tone === 'good').length
  const rate = `${percent(good / attempts.length)} of the last ${attempts.length} attempts succeeded.`
  return {
    note: compact([attempts.length > 1 && rate, last !== null && 'The last success was on']).join(' '),
    noteAt: last === null ? undefined : time(last, now),
  }
}

async function attemptsTable(
  { team, now }: TeamRequest,
  { database }: PageDeps,
  endpoint: ShownEndpoint,
): Promise<Section> {
  const { id, attempts } = endpoint
  const shown = attempts.slice(0, TRIES_SHOWN)
  const isLast = (each: AttemptRow): boolean =>
    shown.find(({ event_id }) => event_id === each.event_id) === each
  const failed = shown.flatMap(({ message_id, message_status }) =>
    message_status === 'failed' ? message_id : [],
  )
  const outcomes = new Map((await readOutcomes(database, team.id, failed)).map((each) => [each.id, each]))
  return buildTable(
    shown,
    (each) => ({
      Outcome: {
        ...answerCell(each.status),
        detail:
          laterWords(each, isLast(each) ? outcomes.get(each.message_id) : undefined) ??
          `in ${each.ms.toLocaleString('en-US')} ms`,
      },
      Event: text(each.type, {
        href: teamPath(team, 'webhooks', id, 'events', each.event_id),
        detail: shortAnswer(each),
      }),
      When: time(each.at, now),
    }),
    {
      title: 'Recent attempts',
      ...successNote(endpoint, now),
      main: 'Event',
      grow: ['Event'],
      id: 'tries',
      live: true,
      empty: 'Nothing has been sent yet.',
      next: [{ href: teamPath(team, 'webhooks', id, 'messages'), label: 'All events' }],
    },
  )
}

function troubles(
  { state, state_reason, failing_since, paused_until, backlog }: ShownEndpoint,
  { team, now }: TeamRequest,
) {
  const trouble = (alert: Alert) => buildAlerts([alert], { id: 'troubles', live: true })
  if (state === 'disabled')
    return trouble({
      tone: 'bad',
      title: `It is disabled${state_reason && state_reason !== BY_HAND ? `: ${state_reason}` : ''}`,
      text: `Nothing is sent to it. Events of the first ${KEPT_DAYS} days are stored as failed. Enable the webhook, then send them.`,
    })
  if (paused_until !== null) {
    const title = `The server of this webhook asked us to wait. Next attempt ${countdown(paused_until, now)}`
    return trouble({ tone: 'warn', title, text: 'Nothing is lost.' })
  }
  if (failing_since === null) return []
  const end = new Date(Date.parse(failing_since) + DISABLE_AFTER_MS).toISOString()
  const many = plural(backlog, 'event')
  return trouble({
    tone: 'warn',
    title: 'All attempts have failed since',
    at: time(failing_since, now),
    text: compact([
      backlog > 0 && `${many} ${backlog === 1 ? 'waits' : 'wait'} for the next attempt.`,
      backlog === 0 && team.role === 'owner' && 'Once it works again, send the failed events again.',
      `If no attempt succeeds by ${dayWords(end).replace(' ', '\u00a0')}, the webhook is disabled.`,
    ]).join(' '),
  })
}

const facts = (endpoint: ShownEndpoint, { team }: TeamRequest): Section =>
  buildFacts(
    {
      Events: text(typeWords(endpoint.types)),
      Domain: text(endpoint.domain ?? 'any'),
      'Waiting events': text(endpoint.backlog.toLocaleString('en-US')),
      ID: text(endpoint.id, { code: true, copy: true }),
    },
    {
      id: 'facts',
      live: true,
      note: team.role === 'owner' ? undefined : 'Only owners of the team can change it or send events again.',
    },
  )

const page = get('viewer', `${PATH}/:id`, async (request, deps) => {
  const { team, params } = request
  const { database } = deps
  const endpoint = await showEndpoint(database, team.id, params.id)
  const domains = (await domainsOfTeam(database, team.id)).map(({ name }) => name)
  const isOwner = team.role === 'owner'
  return show({
    title: endpoint.name,
    state: endpointStateCell(endpoint),
    lead: endpoint.url,
    back: { href: teamPath(team, 'webhooks'), label: 'Webhooks' },
    actions: await actionsFor(request, deps, endpoint),
    above: troubles(endpoint, request),
    sections: compact([
      await attemptsTable(request, deps, endpoint),
      isOwner && endpoint.state === 'enabled' && replayForm(request, endpoint),
      isOwner &&
        buildForm(teamPath(team, 'webhooks', endpoint.id, 'set'), 'Save webhook', {
          title: 'Change the webhook',
          folded: 'quiet',
          fields: fieldsFor(domains, endpoint),
        }),
    ]),
    aside: [facts(endpoint, request)],
  })
})

export const webhookPages = [page]
