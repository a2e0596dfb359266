/**
 * Lists events sent to webhooks by status and type. The page of one has its attempts, why it waits, and a requeue
 * button.
 */

import { WEBHOOK, WEBHOOK_SENDERS } from '../../../../db/channels/webhook.sql.ts'
import { requeueOne } from '../../../../db/delivery/requeue.ts'
import { RequestError } from '../../../../db/errors.ts'
import { checkEnabled, listEndpoints, requireEndpoint } from '../../../../db/messages/webhooks/endpoints.ts'
import {
  type ListedWebhook,
  searchWebhooks,
  WEBHOOK_STATUSES,
  webhookByEvent,
  webhooksAbout,
  webhooksOf,
} from '../../../../db/messages/webhooks/listing.sql.ts'
import { MAX_SUBJECTS, subjectsOf } from '../../../../db/messages/webhooks/recipient.ts'
import { type ShownWebhook, showWebhook } from '../../../../db/messages/webhooks/show.ts'
import type { SearchPage } from '../../../../db/postgres/search-parts.ts'
import { status, text, time } from '../../components/cell.ts'
import type { Alert, Moment, Section } from '../../components/section.ts'
import { webhookSentence } from '../../components/sentence.ts'
import { findStops, mainReason, stateAlert } from '../../components/timeline.ts'
import { asActor, auditRead } from '../../server/action.ts'
import { buildFacts, compact, get, post } from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { chips, defineChoice, defineFilter, search } from '../../server/filter.ts'
import { buildList, PLACE_PARAMS, pageById, type RowReader } from '../../server/list.ts'
import { forOthers, redirect, show, type TeamRequest, teamPath } from '../../server/page.ts'
import { TEXTS } from '../../texts.ts'
import { closedContent, whatHappened, whyItWaits } from '../message-sections.ts'
import { pauseWords, requeuedWords, requeueForms } from '../requeue.ts'
import { listedCells, loadAttempted, subjectPath } from './listed.ts'
import { replayForm } from './one.ts'
import { answerCell, EVERY_TYPE, PATH, shortAnswer, typeOptions } from './parts.ts'

const filter = defineFilter({
  recipient: search('Recipient', { placeholder: 'Recipient’s address or number' }),
  status: chips(WEBHOOK_STATUSES),
  type: defineChoice('Event', EVERY_TYPE, { options: typeOptions('any') }),
})

const NEWEST_ONLY = `Finds events about the recipient’s newest ${MAX_SUBJECTS} messages.`

/**
 * Reads the requested page of a list, with all events or those about the recipient in the filter.
 * @param all reads the messages without a recipient. @throws RequestError bad_request.
 */
async function readPage(
  request: TeamRequest,
  { database }: PageDeps,
  endpoint_id: string | undefined,
  all: (
    asked: Parameters<typeof searchWebhooks>[2],
    place: SearchPage,
  ) => ReturnType<RowReader<ListedWebhook>>,
) {
  const { recipient, ...asked } = filter.read(request.query)
  const id = request.team.id
  if (recipient === undefined) return pageById(request, (place) => all(asked, place))
  const subjects = await subjectsOf(database, id, recipient)
  const page = await pageById(request, (place) =>
    webhooksAbout(database, id, { ...asked, subjects, endpoint_id }, place),
  )
  return subjects.length < MAX_SUBJECTS ? page : { ...page, searched: { note: NEWEST_ONLY } }
}

const KEPT = 'Delivered events are kept for 3 days, failed ones for 30.'

/** The event log of all endpoints. */
const log = get('viewer', `${PATH}/events`, async (request, deps) => {
  const { team, query } = request
  const { database } = deps
  filter.only(query, ...PLACE_PARAMS)
  const names = new Map((await listEndpoints(database, team.id)).map(({ id, name }) => [id, name]))
  const page = await readPage(request, deps, undefined, (asked, place) =>
    searchWebhooks(database, team.id, asked, place),
  )
  const attempted = await loadAttempted(page.rows, request, deps)
  return show({
    title: 'Event log',
    lead: `Events sent to all webhooks. ${KEPT}`,
    back: { href: teamPath(team, 'webhooks'), label: 'Webhooks' },
    sections: [
      ...filter.shown(request),
      buildList(
        page,
        (each) => {
          const { Created, ...cells } = listedCells(each, attempted, request)
          const href = teamPath(team, 'webhooks', each.endpoint_id)
          const name = text(names.get(each.endpoint_id) ?? 'removed', { href })
          return { ...cells, Webhook: names.size > 1 && name, Created }
        },
        {
          fresh: true,
          main: 'Event',
          grow: ['Recipient', 'Webhook'],
          filtered: filter.set(query).size > 0,
          many: 'events',
          nothing: 'No event matches.',
          none: 'Nothing has been sent to a webhook yet.',
        },
      ),
    ],
  })
})

const list = get('viewer', `${PATH}/:id/messages`, async (request, deps) => {
  const { team, params, query } = request
  const { database } = deps
  filter.only(query, ...PLACE_PARAMS)
  const endpoint = await requireEndpoint(database, team.id, params.id)
  const place = { team_id: team.id, id: endpoint.id }
  const page = await readPage(request, deps, endpoint.id, (asked, from) =>
    webhooksOf(database, place, asked, from),
  )
  const attempted = await loadAttempted(page.rows, request, deps)
  return show({
    title: `Events sent to ${endpoint.name}`,
    lead: KEPT,
    back: { href: teamPath(team, 'webhooks', endpoint.id), label: endpoint.name },
    sections: compact([
      ...filter.shown(request),
      buildList(page, (each) => listedCells(each, attempted, request), {
        fresh: true,
        main: 'Event',
        grow: ['Recipient'],
        filtered: filter.set(query).size > 0,
        nothing: 'No event matches.',
        none: 'Nothing has been sent to it yet.',
      }),
      team.role === 'owner' && endpoint.state === 'enabled' && replayForm(request, endpoint),
    ]),
  })
})

function buildWaitAlerts({ waiting, created_at }: ShownWebhook, request: TeamRequest, id: string): Alert[] {
  if (!waiting) return []
  const { team, now } = request
  const seconds = (now.getTime() - Date.parse(created_at)) / 1_000
  const asked = waiting.paused_senders.map(({ until, reason }): Alert => {
    const link = { href: teamPath(team, 'webhooks', id), label: 'The webhook' }
    const title = 'Its server asked us to wait until'
    const at = until === null ? undefined : time(until, now)
    return { tone: 'warn', title, at, text: reason ?? '', link }
  })
  return mainReason(stateAlert(waiting, seconds, request), findStops(waiting, asked), waiting)
}

function buildMoments({ attempts, events, created_at }: ShownWebhook, now: Date): Moment[] {
  const tries = attempts.map((each) => {
    const { at, status: code, ms } = each
    const { text: answer, tone } = answerCell(code)
    const title = code === null ? 'No response' : `Response ${answer} after ${ms.toLocaleString('en-US')} ms`
    return { at, moment: { tone: tone ?? 'plain', title, detail: shortAnswer(each) } }
  })
  const notes = events.map(({ kind, occurred_at, detail }) => {
    const title = kind === 'gave_up' ? 'Failed' : 'Queued again'
    return { at: occurred_at, moment: { tone: kind === 'gave_up' ? 'bad' : 'busy', title, detail } }
  })
  const made = { at: created_at, moment: { tone: 'plain', title: 'Created', detail: '' } }
  return [...notes, ...tries.toReversed(), made]
    .sort((one, other) => Date.parse(other.at) - Date.parse(one.at))
    .map(({ at, moment: { detail, ...moment } }) => ({
      ...(moment as Pick<Moment, 'tone' | 'title'>),
      at: time(at, now),
      detail,
    }))
}

type EventRequest = TeamRequest<'id' | 'event_id'>

const eventPath = ({ team, params: { id, event_id } }: EventRequest, ...rest: string[]): string =>
  teamPath(team, 'webhooks', id, 'events', event_id, ...rest)

const loadWebhook = ({ team, params, now }: EventRequest, { database }: PageDeps): Promise<ShownWebhook> =>
  showWebhook({ tx: database, now }, team.id, { endpoint_id: params.id, event_id: params.event_id })

const body = (found: ShownWebhook): Section => ({
  kind: 'code',
  title: 'Body',
  code: JSON.stringify(JSON.parse(found.body), null, 2),
})

/**
 * An operator who isn't a member opens the body on a separate page, because this page refreshes
 * automatically.
 */
const bodyFor = (found: ShownWebhook, request: EventRequest): Section =>
  request.team.member ? body(found) : closedContent('Body', eventPath(request, 'content'))

const opened = get('viewer', `${PATH}/:id/events/:event_id/content`, async (request, deps) => {
  const found = await loadWebhook(request, deps)
  await auditRead(request, deps, { action: 'webhook.read', subject: request.params.event_id })
  const back = { href: eventPath(request), label: 'Back to the event' }
  return show({ title: found.type, back, sections: [body(found)] })
})

const one = get('viewer', `${PATH}/:id/events/:event_id`, async (request, deps) => {
  const { team, params, now } = request
  const { id: endpoint_id, event_id } = params
  const found = await loadWebhook(request, deps)
  const { name, url } = await requireEndpoint(deps.database, team.id, endpoint_id)
  const { recipient } = found
  const way = found.status === 'delivered' || team.role !== 'owner' ? null : 'plain'
  return show({
    title: found.type,
    state: status(found.status),
    lead: `${webhookSentence(found)}${found.status === 'failed' ? forOthers(team, 'send it again') : ''}`,
    actions: { forms: requeueForms(way, found.waiting?.state, eventPath(request, 'requeue')) },
    back: { href: teamPath(team, 'webhooks', endpoint_id), label: name },
    sections: [
      ...whyItWaits(buildWaitAlerts(found, request, endpoint_id), found.waiting?.state),
      whatHappened(buildMoments(found, now)),
      bodyFor(found, request),
    ],
    aside: [
      buildFacts(
        {
          Recipient: recipient !== null && text(recipient, { href: subjectPath(team, found, recipient) }),
          'Sent to': text(url, { copy: true }),
          Created: time(found.created_at, now),
          'Queued again': found.requeued_at && time(found.requeued_at, now),
          'Event ID (webhook-id)': text(event_id, { code: true, copy: true }),
        },
        { id: 'facts', live: true },
      ),
    ],
  })
})

const requeue = post('owner', `${PATH}/:id/events/:event_id/requeue`, async (request, deps) => {
  const { team, params } = request
  const { id: endpoint_id = '', event_id = '' } = params
  checkEnabled(await requireEndpoint(deps.database, team.id, endpoint_id))
  const found = await webhookByEvent(deps.database, team.id, { endpoint_id, event_id })
  if (!found) throw new RequestError('not_found', TEXTS.noWebhookMessage)
  const ref = { team_id: team.id, id: found.id }
  const how = { force: true, words: `event ${event_id}` }
  await asActor(request, deps, (by) => requeueOne({ ...by, queue: deps.queue }, WEBHOOK, ref, how))
  const paused = await pauseWords(deps, WEBHOOK, request, WEBHOOK_SENDERS + endpoint_id)
  return redirect(teamPath(team, 'webhooks', endpoint_id, 'events', event_id), requeuedWords(paused))
})

export const webhookMessagePages = [log, list, one, opened, requeue]
