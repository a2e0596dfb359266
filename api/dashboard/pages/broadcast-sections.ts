/** Sections of a broadcast's page: its state, stats and buttons. */

import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import type { HistoryEntry } from '../../../db/messages/broadcasts/history.ts'
import { pausedBecause } from '../../../db/messages/broadcasts/paused-because.ts'
import type { BroadcastState } from '../../../db/messages/broadcasts/state.ts'
import type { BroadcastView } from '../../../db/messages/broadcasts/view.ts'
import type { EmailStatus } from '../../../db/messages/emails/status.ts'
import { plural } from '../../../db/plural.ts'
import { formatAge, headed, type Tone, text, time } from '../components/cell.ts'
import { paceWords } from '../components/pace.ts'
import { keepPercents, percent, progressPercent } from '../components/percent.ts'
import type { Actions, Link, Section } from '../components/section.ts'
import { buildAlerts, buildFacts, buildForm, button, compact, field } from '../server/builders.ts'
import { type Question, type TeamRequest, teamPath } from '../server/page.ts'
import { conditionWords } from './broadcast-fields.ts'
import { countUnsent, describeOtherRate, share } from './broadcast-outcomes.ts'
import { whatHappened } from './message-sections.ts'

export const MAX_TESTS = 5

export const DUPLICATE = 'Duplicate broadcast'

export const broadcastPath = ({ team, params }: TeamRequest<'id'>, ...rest: string[]): string =>
  teamPath(team, 'broadcasts', params.id, ...rest)

/** Summarizes the outcome of the emails sent so far. */
function outcomeWords({ made, queued, bounced, complained }: BroadcastView['stats']): string {
  const left = made - queued
  return `${plural(left, 'email')} sent, ${percent(left && bounced / left)} bounced, ${percent(left && complained / left)} reported as spam`
}

/** Names of a broadcast's topics and template. A null `template` was deleted. */
type AudienceNames = { topics: ReadonlyMap<string, string>; template: string | null }

/** Lists the names of objects. A deleted one is shown by its ID. */
export const listNames = (ids: readonly string[], names: ReadonlyMap<string, string>): string =>
  ids.map((id) => names.get(id) ?? id).join(', ')

/** Titles and tones of history entries. */
const ENTRIES: Readonly<Record<HistoryEntry['act'], { title: string; tone: Tone }>> = {
  create: { title: 'Created', tone: 'plain' },
  schedule: { title: 'Scheduled', tone: 'busy' },
  start: { title: 'Started', tone: 'busy' },
  begin: { title: 'Started as scheduled', tone: 'busy' },
  unschedule: { title: 'Made a draft again', tone: 'plain' },
  pause: { title: 'Paused', tone: 'warn' },
  resume: { title: 'Resumed', tone: 'busy' },
  cancel: { title: 'Cancelled', tone: 'plain' },
  again: { title: 'Sent to contacts not reached before', tone: 'busy' },
  end: { title: 'Ended', tone: 'good' },
}

const AUTO_PAUSED = { title: 'Auto-paused', tone: 'bad' } as const

function describeActor({ by, itself }: HistoryEntry): string {
  if (itself) return 'automatically'
  if (by === null) return 'through the API'
  return by === 'cli' ? 'on the command line' : `by ${by}`
}

/** Builds the history. An automatic pause has its reason. */
export function history(
  entries: readonly HistoryEntry[],
  { state_reason: reason, brake }: BroadcastRow,
  now: Date,
): Section {
  const why = reason === null ? undefined : keepPercents(splitSentence(pausedBecause(reason, brake)).title)
  return whatHappened(
    entries.map((entry) => ({
      ...(entry.act === 'pause' && entry.itself ? AUTO_PAUSED : ENTRIES[entry.act]),
      at: time(entry.at, now),
      detail: entry.itself ? (entry.act === 'pause' ? why : undefined) : `${headed(describeActor(entry))}.`,
    })),
  )
}

/** Formats the number of emails sent and the size of the audience. */
export function progressWords({ audience, stats }: Pick<BroadcastView, 'audience' | 'stats'>): string {
  if (audience === null) return ''
  const left = stats.made - stats.queued
  const skipped = stats.skipped === 0 ? '' : `, ${stats.skipped.toLocaleString('en-US')} skipped`
  return `${left.toLocaleString('en-US')} of ${plural(audience, 'contact')}${skipped}`
}

/** Describes the state of a broadcast that has started, with who paused or cancelled it. */
export function broadcastSentence(
  { state, audience, stats: counted }: BroadcastView,
  entries: readonly HistoryEntry[],
  now: Date,
): string {
  const stop = entries.find(({ act }) => STOPS[state] === act)
  const stopped = stop ? ` ${describeActor(stop)}, ${formatAge(stop.at, now)}` : ''
  const words = progressWords({ audience, stats: counted })
  const progress = words === '' ? '' : `${stop ? ', after' : ':'} ${words}`
  return `${STATE_WORDS[state]}${stopped}${progress}.${rateWords(counted)}`
}

/** Returns the shares of sent emails that were opened and clicked, as a sentence. Empty if nothing was reported. */
function rateWords({ made, queued, opened, clicked }: BroadcastView['stats']): string {
  if (opened + clicked === 0) return ''
  const [opens, clicks] = [opened + clicked, clicked].map((count) => share(count, made - queued))
  return ` ${opens} opened, ${clicks} clicked.`
}

const STOPS: Partial<Record<BroadcastState, HistoryEntry['act']>> = { paused: 'pause', cancelled: 'cancel' }

const STATE_WORDS: Partial<Record<BroadcastState, string>> = {
  sending: 'Being sent',
  paused: 'Paused',
  sent: 'Sent',
  cancelled: 'Cancelled',
}

/** Splits a text into its first sentence, for a title, and the rest. */
export function splitSentence(words: string): { title: string; text?: string } {
  const [title = '', ...rest] = words.split('. ')
  return rest.length === 0 ? { title } : { title: `${title}.`, text: rest.join('. ') }
}

/** Explains why a broadcast was paused automatically. */
export function pausedAlert(
  { state_reason: reason, brake }: BroadcastRow,
  view: BroadcastView,
  { team }: TeamRequest,
): Section[] {
  if (reason === null) return buildAlerts([], { id: 'paused', live: true })
  const { title, text: next } = splitSentence(
    keepPercents(pausedBecause(reason, brake, team.role !== 'viewer')),
  )
  const others = brake === null ? '' : describeOtherRate(reason, view)
  const text = next === undefined ? others && `${others}.` : compact<string>([others, next]).join('. ')
  return buildAlerts([{ tone: 'bad', title, text }], { id: 'paused', live: true })
}

/** @param isPreviewed true if the page has a preview, which shows the subject and the sender. */
export const facts = (
  view: BroadcastView,
  names: AudienceNames,
  isPreviewed: boolean,
  { team, now }: TeamRequest,
): Section =>
  buildFacts(
    {
      Starts: view.state === 'scheduled' && time(view.send_at, now),
      Subject: !isPreviewed && text(view.subject),
      From: !isPreviewed && text(view.from),
      Template:
        names.template === null
          ? text('deleted')
          : text(names.template, { href: teamPath(team, 'templates', view.template_id) }),
      Topics: text(listNames(view.topic_ids, names.topics)),
      Except: view.exclude_topic_ids.length > 0 && text(listNames(view.exclude_topic_ids, names.topics)),
      Conditions: view.where.length > 0 && text(view.where.map(conditionWords).join(' and ')),
      'Rate limit':
        view.rate_per_minute !== null && text(`at most ${plural(view.rate_per_minute, 'email')} a minute`),
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
  const share = progressPercent(done, audience)
  if (state !== 'sending') return []
  const left = audience - done
  const pace = paceWords({ done: gone, left, since: view.started_at, progressed_at: null }, now, {
    noun: 'email',
  })
  const words = `${[share, pace].filter(Boolean).join(', ')}.`
  return [{ kind: 'progress', id: 'progress', live: true, label: 'Progress', done, of: audience, words }]
}

/** Describes the contacts that haven't been sent to yet. */
const describeRest = (view: BroadcastView): string =>
  view.audience === null ? 'its audience' : `the ${plural(countUnsent(view), 'remaining contact')}`

export const STATE_QUESTIONS: Readonly<
  Record<'pause' | 'resume' | 'cancel', (view: BroadcastView) => Question>
> = {
  pause: (view) => ({
    question: `Pause “${view.name}” before it is sent to ${describeRest(view)}?`,
    answer: 'Pause broadcast',
  }),
  resume: (view) => ({
    question: `Resume “${view.name}” for ${describeRest(view)}? So far: ${outcomeWords(view.stats)}.`,
    answer: 'Resume broadcast',
  }),
  cancel: (view) => ({
    question: `Cancel “${view.name}” permanently? It won’t be sent to ${describeRest(view)}.`,
    answer: 'Cancel broadcast',
    keep: 'Keep broadcast',
    tone: 'danger',
  }),
}

/** Emails to review before resuming an automatically paused broadcast, by the reason. */
const STOPPED_BY: Readonly<Record<string, { status: EmailStatus; label: string }>> = {
  bounces: { status: 'bounced', label: 'Show bounces' },
  complaints: { status: 'complained', label: 'Show complaints' },
}

/** Labels the link to the page that sends it to contacts who match now. */
export const SEND_TO_REST = 'Send to the rest'

/** True if a sent broadcast missed a part of its audience. A cancelled one was stopped on purpose. */
const isMissing = (view: BroadcastView): boolean => view.state === 'sent' && countUnsent(view) > 0

/** Builds the actions unless it is a draft. @param isBlocked true if it is scheduled, but a problem prevents it. */
export function actions(view: BroadcastView, request: TeamRequest, isBlocked = false): Actions {
  if (request.team.role === 'viewer') return {}
  const { state, state_reason: reason, audience } = view
  const pause = button(broadcastPath(request, 'pause'), 'Pause broadcast')
  const resume = button(broadcastPath(request, 'resume'), 'Resume broadcast')
  const unschedule = button(broadcastPath(request, 'unschedule'), 'Back to draft', {
    tone: isBlocked ? undefined : 'quiet',
    menu: !isBlocked,
    about: 'It doesn’t start until you schedule it again.',
  })
  const restart = button(`${broadcastPath(request, 'unschedule')}?next=when`, 'Change the start', {
    tone: 'quiet',
  })
  const cancel = button(broadcastPath(request, 'cancel'), 'Cancel broadcast', { tone: 'danger' })
  const duplicate = button(broadcastPath(request, 'duplicate'), DUPLICATE)
  const copy = { ...duplicate, tone: 'quiet', menu: true } as const
  const forms = {
    sending: [pause, copy, cancel],
    paused: [resume, copy, cancel],
    scheduled: isBlocked ? [unschedule, copy, cancel] : [restart, unschedule, copy, cancel],
    draft: [],
    sent: [duplicate],
    cancelled: [duplicate],
  }[state]
  const ended = (state === 'sent' || state === 'cancelled') && audience !== null
  const of_it = new URLSearchParams({ broadcast: view.id })
  const stopped = STOPPED_BY[reason ?? '']
  const links = compact<Link>([
    stopped && {
      href: `${broadcastPath(request, 'people')}?status=${stopped.status}`,
      label: stopped.label,
      main: true,
    },
    audience !== null && {
      href: `${teamPath(request.team, 'emails', 'all')}?${of_it}`,
      label: 'Send failed emails again',
      menu: true,
    },
    ended && { href: broadcastPath(request, 'again'), label: SEND_TO_REST, main: isMissing(view) },
  ])
  return { forms, links }
}

export const testForm = (request: TeamRequest, { state }: BroadcastRow): Section =>
  buildForm(broadcastPath(request, 'test'), 'Send test', {
    title: 'Send a test',
    // A draft that can't start has no main action, so this must not become one.
    folded: state === 'draft' ? 'quiet' : true,
    note: `Sends a test to up to ${MAX_TESTS} addresses, as a contact would receive it. The stats of the broadcast don’t include tests.`,
    fields: [
      field('to', 'To (comma-separated)', { required: true, value: request.person.email }),
      field('contact', 'As this contact (optional)', {
        value: request.query.get('contact') ?? '',
        hint: 'The address of a contact, whose properties fill the variables.',
      }),
    ],
  })
