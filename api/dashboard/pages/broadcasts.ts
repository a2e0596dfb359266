/** Lists the broadcasts of a team with their progress, and creates new ones. */

import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { broadcastsOfTeam } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { createBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import { BROADCAST_STATES, type BroadcastState } from '../../../db/messages/broadcasts/state.ts'
import { type BroadcastView, broadcastViews } from '../../../db/messages/broadcasts/view.ts'
import { plural } from '../../../db/plural.ts'
import { type Cell, number, status, text, time } from '../components/cell.ts'
import { isUnreported, shareWords } from '../components/shares.ts'
import { action, buildAlerts, buildTable, get } from '../server/builders.ts'
import { chips, defineFilter } from '../server/filter.ts'
import { idParam, pageById } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { stepPath } from './broadcast-fields.ts'
import { draftChanges } from './broadcast-form.ts'
import { limitTone, share, sumRates } from './broadcast-outcomes.ts'
import { progressWords } from './broadcast-sections.ts'
import { type DraftPage, stepShown, stepWanted } from './broadcast-steps.ts'

const TONES: Partial<Record<BroadcastState, Cell['tone']>> = {
  scheduled: 'busy',
  sending: 'busy',
  sent: 'good',
}

/** Builds the state. An automatic pause is red and named, and a manual one isn't. */
export const broadcastStateCell = ({
  state,
  state_reason,
}: Pick<BroadcastView, 'state' | 'state_reason'>): Cell => {
  const tone = state === 'paused' && state_reason === null ? 'warn' : TONES[state]
  return {
    ...status(state, tone ? { tone } : {}),
    ...(state_reason === null ? {} : { text: `auto-${state}` }),
  }
}

/** Builds the cell with the share of bounces or complaints. It is red above its limit, with enough emails. */
function limitedCell(view: BroadcastView, kind: 'bounced' | 'complained'): Cell {
  const sums = sumRates(view)
  const tone = limitTone(sums, kind) === 'bad' ? 'bad' : undefined
  return text(shareWords(sums, kind), { number: true, tone, tip: plural(sums[kind], 'email') })
}

/** Builds the cell with the share of sent emails that were opened. Without reports of deliveries, it is unknown. */
export function openedCell(view: Pick<BroadcastView, 'stats'>): Cell {
  const sums = sumRates(view)
  const { opened, clicked } = view.stats
  return text(isUnreported(sums) ? null : share(opened + clicked, sums.sent), { number: true })
}

/** Builds the cell with the number of emails sent and the audience. Its tooltip has the details. */
export const sentCell = (view: Pick<BroadcastView, 'audience' | 'stats'>): Cell => {
  const { audience, stats } = view
  const words =
    audience === null ? null : `${number(stats.made - stats.queued).text} of ${number(audience).text}`
  return text(words, { number: true, tip: progressWords(view) })
}

/** Returns when a broadcast started or will start. `send_at` only counts while it is scheduled. */
export const startTime = ({
  state,
  started_at,
  send_at,
}: Pick<BroadcastView, 'state' | 'started_at' | 'send_at'>): string | null =>
  started_at ?? (state === 'scheduled' ? send_at : null)

/** Orders broadcasts by their start, latest first, after those without a start. */
export const byStart = <B extends Parameters<typeof startTime>[0]>(broadcasts: readonly B[]): B[] => {
  const start = (broadcast: B): number => Date.parse(startTime(broadcast) ?? '9999-12-31')
  return broadcasts.toSorted((one, other) => start(other) - start(one))
}

const filter = defineFilter({ state: chips(BROADCAST_STATES) })

const list = get('viewer', '/teams/:team/broadcasts', async (request, { database }) => {
  const { team, now, query } = request
  const { state } = filter.read(query)
  const page = await pageById(request, (place) => broadcastsOfTeam(database, team.id, { ...place, state }))
  const views = byStart(await broadcastViews(database, page.rows))
  const fresh = { href: teamPath(team, 'broadcasts', 'new'), label: 'Create a broadcast' }
  const edits = team.role !== 'viewer'
  const isEmpty = views.length === 0 && page.first && state === undefined
  return show({
    title: 'Broadcasts',
    lead: 'Send a template to the subscribed contacts of one or more topics.',
    actions: { links: edits && !isEmpty ? [{ ...fresh, main: true }] : [] },
    sections: [
      ...(isEmpty ? [] : filter.shown(request)),
      buildTable(
        views,
        (view) => ({
          Name: text(view.name, {
            href: teamPath(team, 'broadcasts', view.id),
            tip: `${view.name} · ${view.subject}`,
          }),
          Status: broadcastStateCell(view),
          Sent: sentCell(view),
          Opened: openedCell(view),
          Bounced: limitedCell(view, 'bounced'),
          Complained: limitedCell(view, 'complained'),
          // A draft has no start.
          Start: time(startTime(view), now, view.state === 'draft' ? '–' : 'not started'),
        }),
        {
          id: 'list',
          live: page.first,
          next: page.next,
          empty: isEmpty
            ? 'No broadcasts yet.'
            : page.first
              ? 'No broadcast matches.'
              : 'No older broadcasts.',
          start: edits && isEmpty ? fresh : undefined,
        },
      ),
    ],
  })
})

const writing = ({ team }: TeamRequest): DraftPage => ({
  title: 'New broadcast',
  back: { href: teamPath(team, 'broadcasts'), label: 'Broadcasts' },
  action: teamPath(team, 'broadcasts', 'new'),
  draft: null,
})

const fresh = get('editor', '/teams/:team/broadcasts/new', async (request, deps) => {
  const { team } = request
  const needs = buildAlerts([
    (await topicsOfTeam(deps.database, team.id)).length === 0 && {
      tone: 'warn',
      title: 'No topics yet',
      link: { href: teamPath(team, 'topics'), label: 'Create a topic' },
    },
    (await templatesOfTeam(deps.database, team.id)).length === 0 && {
      tone: 'warn',
      title: 'No templates yet',
      link: { href: teamPath(team, 'templates'), label: 'Create a template' },
    },
  ])
  if (needs.length === 0) return stepShown(writing(request), request, deps)
  const { title, back } = writing(request)
  return show({ title, back, sections: needs })
})

/** Stores the first step, the message, as a new draft. A topic that links here is its audience. */
const create = action('editor', '/teams/:team/broadcasts/new', async (by, request) => {
  const { team, form } = request
  const topic = idParam(form, 'topic')
  const fields = { ...draftChanges(form, null, 'message'), ...(topic ? { topic_ids: [topic] } : {}) }
  const acting = { team_id: team.id, domain: null }
  const { row } = await createBroadcast(by, acting, { fields, idempotency_key: null })
  const path = teamPath(team, 'broadcasts', row.id)
  const next = stepWanted(request)
  return redirect(next ? stepPath(path, next) : path, `The draft ${row.name} is saved.`)
})

export const broadcastsPages = [list, fresh, create]
