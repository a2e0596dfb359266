/** The messages to a webhook: found by status and type; one with its tries, why it waits, and another try. */

import { DISABLED } from '../../../../db/channels/happenings/webhooks.sql.ts'
import { WEBHOOK, WEBHOOK_SENDERS } from '../../../../db/channels/webhook.sql.ts'
import { requeueOne } from '../../../../db/delivery/requeue.ts'
import { Refusal } from '../../../../db/errors.ts'
import { checkEnabled, endpointOrRefusal } from '../../../../db/messages/webhooks/endpoints.ts'
import { WEBHOOK_STATUSES, webhookByEvent, webhooksOf } from '../../../../db/messages/webhooks/listing.sql.ts'
import { type ShownWebhook, showWebhook } from '../../../../db/messages/webhooks/show.ts'
import { plural, status, text, time } from '../../drawn/cell.ts'
import type { Alert, Form, Moment, Section } from '../../drawn/section.ts'
import { pausedQueue, stateAlert } from '../../drawn/timeline.ts'
import { inPerson, noteLook } from '../../served/act.ts'
import { wordChips } from '../../served/chips.ts'
import { filled, idGiven, onlyKnown, PAGE_SIZE, pageOf, wordGiven } from '../../served/list.ts'
import { get, post, press, some, tableOf } from '../../served/made.ts'
import { redirect, show, type TeamRequest, teamPath } from '../../served/page.ts'
import { pauseWords, requeuedWords } from '../requeue.ts'
import { answerCell, EVERY_TYPE, PATH } from './parts.ts'

const list = get('viewer', `${PATH}/:id/messages`, async (request, { database }) => {
  const { team, params, query, now } = request
  onlyKnown(query, ['status', 'type', 'before', 'newer'])
  const endpoint = await endpointOrRefusal(database, team.id, params.id ?? '')
  const filter = {
    status: wordGiven(query, 'status', WEBHOOK_STATUSES),
    type: wordGiven(query, 'type', EVERY_TYPE),
  }
  const page = { before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
  const found = await webhooksOf(database, { team_id: team.id, id: endpoint.id }, filter, page)
  const { rows, next } = pageOf(request, found, ({ id }) => id)
  const path = teamPath(team, 'webhooks', endpoint.id, 'messages')
  const isFiltered = filter.status !== undefined || filter.type !== undefined
  return show({
    title: `Messages to ${endpoint.name}`,
    lead: 'What was delivered is kept for 3 days, what failed for 30.',
    back: { href: teamPath(team, 'webhooks', endpoint.id), label: endpoint.name },
    sections: [
      {
        kind: 'filter',
        action: path,
        method: 'get',
        submit: 'Find',
        reset: isFiltered ? { href: path, label: 'All' } : null,
        fields: filled(
          [
            { name: 'status', label: '', type: 'hidden' },
            {
              name: 'type',
              label: 'Type',
              type: 'select',
              options: [
                { value: '', label: 'any' },
                ...EVERY_TYPE.map((type) => ({ value: type, label: type })),
              ],
            },
          ],
          query,
        ),
      },
      { kind: 'chips', chips: wordChips(request, 'status', WEBHOOK_STATUSES) },
      tableOf(
        rows,
        (each) => ({
          Status: status(each.status),
          Type: text(each.type, { href: teamPath(team, 'webhooks', endpoint.id, 'events', each.event_id) }),
          Made: time(each.created_at, now),
        }),
        {
          keyOf: (each) => each.id,
          id: 'messages',
          live: !query.has('before'),
          fresh: true,
          empty: isFiltered ? 'No message matches.' : 'Nothing has happened yet that it gets.',
          next,
        },
      ),
    ],
  })
})

/** Why it waits. */
function waitsOf({ waiting, created_at }: ShownWebhook, { team, now }: TeamRequest, id: string): Alert[] {
  if (!waiting) return []
  const seconds = (now.getTime() - Date.parse(created_at)) / 1_000
  const suspended: Alert = { tone: 'bad', title: 'Nothing goes out: the team is suspended' }
  return some([
    team.suspended && suspended,
    waiting.queue_paused && pausedQueue('What it waits in', waiting.queue_pause_reason),
    ...waiting.paused_senders.map(({ until, reason }): Alert => {
      const title = `Its server asks to wait until ${time(until, now).text}`
      const link = { href: teamPath(team, 'webhooks', id), label: 'The webhook' }
      return { tone: 'warn', title, text: reason ?? '', link }
    }),
    stateAlert(waiting, seconds, now),
  ])
}

/** Everything that happened to it, the latest first. */
function momentsOf({ attempts, events, created_at }: ShownWebhook, now: Date): Moment[] {
  const tries = attempts.map(({ at, status: code, ms, response }) => {
    const { text: answer, tone } = answerCell(code)
    const title = code === null ? 'No answer' : `Answered ${answer} after ${ms.toLocaleString('en-US')} ms`
    return { at, moment: { tone: tone ?? 'plain', title, detail: response } }
  })
  const notes = events.map(({ kind, occurred_at, detail }) => {
    const title = kind === 'gave_up' ? 'Given up' : 'Begun again'
    return { at: occurred_at, moment: { tone: kind === 'gave_up' ? 'bad' : 'busy', title, detail } }
  })
  const made = { at: created_at, moment: { tone: 'plain', title: 'It happened', detail: '' } }
  return [...notes, ...tries.toReversed(), made]
    .sort((one, other) => Date.parse(other.at) - Date.parse(one.at))
    .map(({ at, moment: { detail, ...moment } }) => ({
      ...(moment as Pick<Moment, 'tone' | 'title'>),
      at: time(at, now),
      ...(detail === '' ? {} : { detail }),
    }))
}

/** What became of it in one sentence. */
function sentenceOf({ status: word, attempts, events }: ShownWebhook): string {
  const isMissed = attempts.length === 0 && events.at(-1)?.detail === DISABLED
  if (word === 'failed' && isMissed) return 'Not sent: the webhook was disabled.'
  const tries = plural(attempts.length, 'try', 'tries')
  if (word === 'delivered') return `Delivered after ${tries}.`
  return word === 'failed' ? `Given up after ${tries}.` : 'Waiting to be sent.'
}

const one = get('viewer', `${PATH}/:id/events/:event_id`, async (request, { database }) => {
  const { team, params, now } = request
  const { id: endpoint_id = '', event_id = '' } = params
  const found = await showWebhook({ tx: database, now }, team.id, { endpoint_id, event_id })
  await noteLook(request, { database }, { action: 'webhook.read', subject: event_id })
  const alerts = waitsOf(found, request, endpoint_id)
  const waits: Section[] =
    alerts.length === 0
      ? []
      : [{ kind: 'alerts', id: 'waiting', live: true, title: 'Why it waits', calm: '', alerts }]
  const again: Form = press(
    teamPath(team, 'webhooks', endpoint_id, 'events', event_id, 'requeue'),
    'Try again now',
  )
  const canRetry = team.role === 'owner' && found.status !== 'delivered'
  return show({
    title: found.type,
    state: status(found.status),
    lead: sentenceOf(found),
    actions: { kind: 'actions', forms: canRetry ? [again] : [] },
    back: { href: teamPath(team, 'webhooks', endpoint_id), label: 'Webhook' },
    sections: [
      ...waits,
      {
        kind: 'timeline',
        id: 'timeline',
        live: true,
        title: 'What happened',
        moments: momentsOf(found, now),
        empty: 'Nothing has happened yet.',
      },
      { kind: 'code', title: 'Body', code: JSON.stringify(JSON.parse(found.body), null, 2) },
    ],
    aside: [
      {
        kind: 'facts',
        id: 'facts',
        live: true,
        facts: some([
          { label: 'Made', cell: time(found.created_at, now) },
          found.requeued_at !== null && { label: 'Begun again', cell: time(found.requeued_at, now) },
          { label: 'webhook-id', cell: text(event_id, { code: true, copy: true }) },
        ]),
      },
    ],
  })
})

const requeue = post('owner', `${PATH}/:id/events/:event_id/requeue`, async (request, deps) => {
  const { team, params } = request
  const { id: endpoint_id = '', event_id = '' } = params
  checkEnabled(await endpointOrRefusal(deps.database, team.id, endpoint_id))
  const found = await webhookByEvent(deps.database, team.id, { endpoint_id, event_id })
  if (!found) throw new Refusal('not_found', 'there is no such webhook: perhaps it was kept for long enough')
  const ref = { team_id: team.id, id: found.id }
  const how = { force: true, words: `event ${event_id}` }
  await inPerson(request, deps, (by) => requeueOne({ ...by, queue: deps.queue }, WEBHOOK, ref, how))
  const paused = await pauseWords(deps, WEBHOOK, request.person, WEBHOOK_SENDERS + endpoint_id)
  return redirect(teamPath(team, 'webhooks', endpoint_id, 'events', event_id), requeuedWords(paused))
})

export const webhookMessagePages = [list, one, requeue]
