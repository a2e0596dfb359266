/** The sections of one broadcast's page: how it stands, its figures, and the buttons that change it. */

import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import type { HistoryEntry } from '../../../db/messages/broadcasts/history.ts'
import { pausedBecause } from '../../../db/messages/broadcasts/paused-because.ts'
import type { BroadcastState } from '../../../db/messages/broadcasts/state.ts'
import type { BroadcastView } from '../../../db/messages/broadcasts/view.ts'
import { BROADCAST_FIGURES, type Figure } from '../../../db/stats/daily/broadcasts.sql.ts'
import { ageOf, headed, number, plural, type Tone, text, time } from '../components/cell.ts'
import { paceWords } from '../components/pace.ts'
import type { Actions, Section } from '../components/section.ts'
import { isUnreported, UNREPORTED } from '../components/shares.ts'
import { alertsOf, compact, factsOf, field, formOf, press, tableOf } from '../server/builders.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { conditionWords } from './broadcast-fields.ts'
import { whatHappened } from './message-sections.ts'

export const MAX_TESTS = 5

/** The address of a broadcast's page, or of one below it. */
export const broadcastPath = ({ team, params }: TeamRequest<'id'>, ...rest: string[]): string =>
  teamPath(team, 'broadcasts', params.id, ...rest)

const percent = (part: number, of: number): string => `${of === 0 ? 0 : ((part * 100) / of).toFixed(2)} %`

/** What has become of the emails that have left. */
function outcomeWords({ made, queued, bounced, complained }: BroadcastView['stats']): string {
  const left = made - queued
  return `${plural(left, 'email')} sent, ${percent(bounced, left)} bounced, ${percent(complained, left)} complained`
}

/** What a broadcast's ids are called; `template` null: it is deleted. */
type Names = { topics: ReadonlyMap<string, string>; template: string | null }

/** Things by their names; one that is gone by its id. */
export const namesOf = (ids: readonly string[], names: ReadonlyMap<string, string>): string =>
  ids.map((id) => names.get(id) ?? id).join(', ')

/** What happened, and what it means for how it stands. */
const ENTRIES: Readonly<Record<HistoryEntry['act'], { title: string; tone: Tone }>> = {
  create: { title: 'Created', tone: 'plain' },
  schedule: { title: 'Scheduled', tone: 'busy' },
  start: { title: 'Started', tone: 'busy' },
  begin: { title: 'Started at its time', tone: 'busy' },
  unschedule: { title: 'Made a draft again', tone: 'plain' },
  pause: { title: 'Paused', tone: 'warn' },
  resume: { title: 'Resumed', tone: 'busy' },
  cancel: { title: 'Cancelled', tone: 'bad' },
  again: { title: 'Sent on to those not reached before', tone: 'busy' },
  end: { title: 'Sent to everybody', tone: 'good' },
}

function byWords({ by, itself }: HistoryEntry): string {
  if (itself) return 'by itself'
  if (by === null) return 'through the API'
  return by === 'cli' ? 'on the command line' : `by ${by}`
}

export const history = (entries: readonly HistoryEntry[], now: Date): Section =>
  whatHappened(
    entries.map((entry) => ({
      ...ENTRIES[entry.act],
      at: time(entry.at, now),
      detail: `${headed(byWords(entry))}.`,
    })),
  )

/** How many of a broadcast's emails have left, of how many that are to. */
export function progressWords({ audience, stats }: Pick<BroadcastView, 'audience' | 'stats'>): string {
  if (audience === null) return ''
  const left = stats.made - stats.queued
  const skipped = stats.skipped === 0 ? '' : `, ${stats.skipped.toLocaleString('en-US')} skipped`
  return `${left.toLocaleString('en-US')} of ${plural(audience, 'contact')}${skipped}`
}

/** How it stands, in one sentence; one that was stopped says by whom. */
export function broadcastSentence(
  { state, audience, stats: counted, send_at }: BroadcastView,
  entries: readonly HistoryEntry[],
  now: Date,
): string {
  if (state === 'draft') return 'Draft: nothing is sent until you start it.'
  if (state === 'scheduled') return `Starts ${time(send_at, now).age ?? ''}.`
  const stop = entries.find(({ act }) => STOPS[state] === act)
  const stopped = stop ? ` ${byWords(stop)}, ${ageOf(stop.at, now)}` : ''
  const progress = audience === null ? '' : `: ${progressWords({ audience, stats: counted })}`
  return `${STATE_WORDS[state]}${stopped}${progress}.`
}

const STOPS: Partial<Record<BroadcastState, HistoryEntry['act']>> = { paused: 'pause', cancelled: 'cancel' }

const STATE_WORDS: Readonly<Record<Exclude<BroadcastState, 'draft' | 'scheduled'>, string>> = {
  sending: 'Being sent',
  paused: 'Paused',
  sent: 'Sent',
  cancelled: 'Cancelled',
}

/** Why it stands still, where no person has stopped it. */
export const pausedAlert = ({ state_reason: reason, brake }: BroadcastRow): Section[] =>
  alertsOf([reason !== null && { tone: 'warn', title: pausedBecause(reason, brake) }], {
    id: 'paused',
    live: true,
  })

export const facts = (view: BroadcastView, names: Names, { team, now }: TeamRequest): Section =>
  factsOf(
    {
      Subject: text(view.subject),
      From: text(view.from),
      Template:
        names.template === null
          ? text('deleted')
          : text(names.template, { href: teamPath(team, 'templates', view.template_id) }),
      Topics: text(namesOf(view.topic_ids, names.topics)),
      Except: view.exclude_topic_ids.length > 0 && text(namesOf(view.exclude_topic_ids, names.topics)),
      Conditions: view.where.length > 0 && text(view.where.map(conditionWords).join('; ')),
      Pace:
        view.rate_per_minute !== null && text(`at most ${plural(view.rate_per_minute, 'email')} a minute`),
      Starts: view.state !== 'cancelled' && view.send_at && time(view.send_at, now),
      Started: view.started_at && time(view.started_at, now),
      Ended: view.ended_at && time(view.ended_at, now),
      ID: text(view.id, { code: true, copy: true }),
    },
    { id: 'facts', live: true },
  )

export function progress(view: BroadcastView, now: Date): Section[] {
  const { audience, stats: counted, state } = view
  if (audience === null || audience === 0) return []
  const gone = counted.made - counted.queued
  const done = Math.min(audience, gone + counted.skipped)
  const share = `${Math.floor((done * 100) / audience)} %`
  const live = state === 'sending'
  const left = live ? audience - done : 0
  const pace = paceWords({ done: gone, left, since: view.started_at }, now, { noun: 'email' })
  const words = `${[`${share}: ${progressWords(view)}`, pace].filter(Boolean).join(', ')}.`
  return [{ kind: 'progress', id: 'progress', live, label: 'Progress', done, of: audience, words }]
}

/** What came of the emails, each figure with those who went on from there, as shares of what was sent. */
export function outcomes({ stats: counted }: BroadcastView): Section {
  const { made, queued, delivered, opened, clicked, bounced, complained } = counted
  const sent = made - queued
  const arrived = delivered + opened + clicked + complained
  const tile = (label: string, count: number) => ({
    label,
    value: number(count).text,
    detail: percent(count, sent),
  })
  return {
    kind: 'tiles',
    id: 'outcomes',
    title: 'Results',
    live: true,
    tiles: [
      { label: 'Sent', value: number(sent).text, detail: `of ${plural(made, 'email')}` },
      isUnreported(sent, arrived) ? { label: 'Delivered', ...UNREPORTED } : tile('Delivered', arrived),
      tile('Opened', opened + clicked),
      tile('Clicked', clicked),
      tile('Bounced', bounced),
      tile('Complaints', complained),
    ],
  }
}

/** How far each email got, with the list of its people. */
export function figures({ stats: counted, audience }: BroadcastView, request: TeamRequest): Section {
  const listOf = (figure: Figure): string => {
    if (figure === 'skipped') return broadcastPath(request, 'skips')
    return figure === 'made'
      ? broadcastPath(request, 'people')
      : `${broadcastPath(request, 'people')}?status=${figure}`
  }
  return {
    ...tableOf(
      BROADCAST_FIGURES.filter((figure) => counted[figure] > 0),
      (figure) => ({
        People: text(figure === 'made' ? 'All recipients' : headed(figure), { href: listOf(figure) }),
        Count: number(counted[figure]),
      }),
      { empty: 'Nobody so far.' },
    ),
    id: 'figures',
    title: 'People by status',
    note: `${plural(audience ?? 0, 'contact')} in the audience. Each person stands in one line.`,
    live: true,
  }
}

/** What can be done with one that is no draft any more. */
export function actions(view: BroadcastView, request: TeamRequest): Actions {
  if (request.team.role === 'viewer') return {}
  const { name, state, stats: counted, audience } = view
  const left = Math.max(0, (audience ?? 0) - counted.made - counted.skipped) + counted.queued
  const rest =
    audience === null
      ? 'its audience'
      : `the ${plural(left, 'contact')} that ${left === 1 ? 'is' : 'are'} left`
  const pause = press(broadcastPath(request, 'pause'), 'Pause broadcast', {
    confirm: `Pause “${name}”, with ${rest} still to go?`,
  })
  const resume = press(broadcastPath(request, 'resume'), 'Resume broadcast', {
    confirm: `Resume “${name}” to ${rest}? So far: ${outcomeWords(counted)}.`,
  })
  const unschedule = press(broadcastPath(request, 'unschedule'), 'Back to draft')
  const cancel = press(broadcastPath(request, 'cancel'), 'Cancel broadcast', {
    tone: 'danger',
    keep: 'Keep broadcast',
    confirm: `Cancel “${name}” for good? It will not go to ${rest}.`,
  })
  const duplicate = press(broadcastPath(request, 'duplicate'), 'Duplicate broadcast')
  const copy = { ...duplicate, tone: 'quiet' } as const
  const forms = {
    sending: [pause, copy, cancel],
    paused: [resume, copy, cancel],
    scheduled: [unschedule, copy, cancel],
    draft: [],
    sent: [duplicate],
    cancelled: [duplicate],
  }[state]
  const ended = (state === 'sent' || state === 'cancelled') && audience !== null
  const of_it = new URLSearchParams({ broadcast: view.id })
  const links = compact([
    audience !== null && {
      href: `${teamPath(request.team, 'emails', 'all')}?${of_it}`,
      label: 'Send failed emails again',
    },
    ended && { href: broadcastPath(request, 'again'), label: 'Send to those not reached yet' },
  ])
  return { forms, links }
}

export const testForm = (request: TeamRequest): Section =>
  formOf(
    broadcastPath(request, 'test'),
    'Send test',
    [
      field('to', 'To, separated by commas', { required: true, value: request.person.email }),
      field('contact', 'As this contact (optional)', {
        value: request.query.get('contact') ?? '',
        hint: 'The address of a contact, whose properties fill the variables.',
      }),
    ],
    {
      title: 'Send a test',
      folded: true,
      note: `Sends it as one contact would get it to at most ${MAX_TESTS} addresses. It counts in no figure of the broadcast.`,
    },
  )
