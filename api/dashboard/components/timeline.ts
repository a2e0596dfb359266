/**
 * Builds a message's timeline, the outcome of each recipient, and the reason for its wait. Pure. Responses of
 * the provider about this message are shown to everyone. Sender names, and responses about our senders, are
 * only for operators, because they can name another team's recipient.
 */

import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import type { Waiting } from '../../../db/delivery/waiting.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import { type EmailEventKind, linkIn } from '../../../db/messages/emails/status.ts'
import { plural } from '../../../db/plural.ts'
import { RESTORED } from '../../../db/queue/pauses.sql.ts'
import { recipientIdentity } from '../../../db/validation/addressees.ts'
import { headed, type Tone, time } from './cell.ts'
import type { Alert, Moment } from './section.ts'

export type EventText = { title: string; tone: Tone }

export const WORDING: Record<EmailEventKind, EventText> = {
  sent: { title: 'Accepted by the mail server', tone: 'busy' },
  delivered: { title: 'Delivered', tone: 'good' },
  opened: { title: 'Opened', tone: 'good' },
  clicked: { title: 'Link clicked', tone: 'good' },
  bounced: { title: 'Bounced', tone: 'bad' },
  suppressed: { title: 'Not sent: the address is suppressed', tone: 'bad' },
  complained: { title: 'Reported as spam', tone: 'bad' },
  deferred: { title: 'Deferred, will retry', tone: 'warn' },
  held: { title: 'Waiting, because the sending account had a problem', tone: 'warn' },
  unknown: { title: 'The server’s response was lost', tone: 'warn' },
  delayed: { title: 'Delayed by a server along the way', tone: 'warn' },
  unreadable: { title: 'Unreadable report', tone: 'warn' },
  auto_reply: { title: 'Automatic reply', tone: 'plain' },
  unsubscribed: { title: 'Unsubscribed at the mail provider', tone: 'plain' },
  machine_opened: { title: 'Opened by a proxy or scanner', tone: 'plain' },
  machine_clicked: { title: 'Link opened by a scanner', tone: 'plain' },
  requeued: { title: 'Queued again', tone: 'busy' },
  gave_up: { title: 'Failed', tone: 'bad' },
  resent: { title: 'Resent to a corrected address', tone: 'busy' },
  copied: { title: 'Copy sent', tone: 'busy' },
  resent_from: { title: 'Resent version of an earlier email', tone: 'busy' },
  copied_from: { title: 'Sent as a copy of another email', tone: 'busy' },
}

const WORDING_BY_KIND: ReadonlyMap<string, EventText> = new Map(Object.entries(WORDING))

/** Returns the wording of an event. An unknown event is shown as its kind. */
export const eventText = (kind: string): EventText =>
  WORDING_BY_KIND.get(kind) ?? { title: kind.replaceAll('_', ' '), tone: 'plain' }

export type Viewer = { person: { operator: boolean }; now: Date }

/** Returns the provider's response in an event, or '' if this viewer must not see it. */
export const wordsFor = ({ person }: Viewer, { kind, detail }: { kind: string; detail: string }): string =>
  kind === 'held' && !person.operator ? '' : detail

/** Maximum number of entries per kind. An email to a mailing list can be opened many times. */
const MAX_OF_A_KIND = 500

/** Builds a message's timeline, latest first. @param said builds an event's entry, except its time. */
export function buildTimeline<E extends { kind: string; time: string }>(
  { events, created_at }: { events: readonly E[]; created_at: string },
  now: Date,
  said: (event: E) => Omit<Moment, 'at'>,
): Moment[] {
  const byKind = [...Map.groupBy(events, ({ kind }) => kind).values()]
  const left = byKind.map((those) => those.slice(0, -MAX_OF_A_KIND))
  const isLeft = new Set(left.flat())
  // The last hidden event is replaced by the number of hidden ones.
  const counts = new Map(left.map((those) => [those.at(-1), those.length]))
  const moments = events.flatMap((event): Moment[] => {
    const at = time(event.time, now)
    if (!isLeft.has(event)) return [{ ...said(event), at }]
    const count = counts.get(event)
    if (count === undefined) return []
    const many = plural(count, 'earlier entry', 'earlier entries')
    return [{ tone: 'plain', title: `${said(event).title}: ${many} not shown here`, at }]
  })
  return [...moments.reverse(), { tone: 'plain', title: 'Accepted by the API', at: time(created_at, now) }]
}

export const buildMoments = (email: Pick<ShownEmail, 'events' | 'created_at'>, viewer: Viewer): Moment[] =>
  buildTimeline(email, viewer.now, (event) => {
    const link = linkIn(event)
    const detail = link ? `By ${link.by}.` : wordsFor(viewer, event)
    return { ...eventText(event.kind), who: event.recipient ?? undefined, detail }
  })

/** `as` is the field that contains the address. */
type EmailRecipient = { address: string; as: 'To' | 'Cc' | 'Bcc' }
type RecipientOutcome = EmailRecipient & { outcome: string; words: string }

function listAddressees({ to_emails, cc_emails = [], bcc_emails = [] }: ShownEmail): EmailRecipient[] {
  const listed = (as: EmailRecipient['as']) => (address: string) => ({ address, as })
  return [...to_emails.map(listed('To')), ...cc_emails.map(listed('Cc')), ...bcc_emails.map(listed('Bcc'))]
}

/** Returns the outcome of each recipient, which is the highest status among its events. */
export function recipientOutcomes(email: ShownEmail, viewer: Viewer): RecipientOutcome[] {
  const { events, status } = email
  const rung = (kind: string): number => EMAIL_LADDER.findIndex((status) => status === kind)
  const byIdentity = Map.groupBy(events, ({ recipient }) => recipient && recipientIdentity(recipient))
  const common = byIdentity.get(null)?.some(({ kind }) => kind === 'sent') ? 'sent' : 'queued'
  return listAddressees(email).map(({ address, as }) => {
    const own = byIdentity.get(recipientIdentity(address)) ?? []
    const highest = own.reduce((best, { kind }) => (rung(kind) > rung(best) ? kind : best), 'queued')
    const outcome = rung(highest) > rung(common) ? highest : own.length === 0 ? status : common
    const last = own.at(-1)
    return { address, as, outcome, words: last ? wordsFor(viewer, last) : '' }
  })
}

/** A null `until` means that an operator has to resume it. */
type Pause = { sender: string; until: string | null; reason: string | null }

const pauseAlert = ({ sender, until, reason }: Pause, now: Date): Alert => ({
  tone: 'warn',
  title: until === null ? `${sender} is paused` : `${sender} is paused until`,
  at: until === null ? undefined : time(until, now),
  text: reason ?? 'No reason given.',
})

/**
 * Builds the alert for delivery that waits for a paused sender, as teams see it.
 * @param waits the messages, with a verb.
 */
export const pausedDelivery = (waits: string): Alert => ({
  tone: 'warn',
  title: 'Delivery is paused. We retry automatically',
  text: `${waits} sent when delivery resumes. Nothing is lost, and you don’t have to do anything.`,
})

/** Builds the alert for a queue that was paused by an operator or in a copied database. @param subject of its title. */
export const pausedQueue = (subject: string, reason: string | null): Alert => ({
  tone: 'warn',
  title:
    reason === RESTORED
      ? `${subject} is paused, because the database was restored or copied`
      : `${subject} is paused by an operator`,
  text: 'Queued messages wait until an operator resumes the queue. Nothing is lost.',
})

export const SUSPENDED_TEAM: Alert = {
  tone: 'bad',
  title: 'Nothing goes out, because the team is suspended',
  text: 'Queued messages are sent once an operator resumes the team.',
}

/** When paused bulk email is sent. */
export const BULK_NEXT =
  'Broadcasts and batches wait until an owner or operator resumes them. Single emails are still sent.'

/** The alert for a restored copy of the database, where all deliveries are paused. */
export const RESTORED_COPY: Alert = {
  tone: 'bad',
  title: 'Nothing goes out, because the database was restored or copied',
  text: 'After a failover, sending resumes automatically within a minute. Otherwise an operator must review the queued messages and resume sending, because some may already have been sent.',
}

/** Advises the reader about a message that no worker claims. Only operators can check the workers. */
function unclaimedWords(isLong: boolean, limit: string, isOperator: boolean): string {
  const advice = isOperator
    ? 'check that a worker of its queue is running'
    : 'tell an operator, because the worker of its queue may not be running'
  return isLong ? `${headed(advice)}.` : `If this lasts longer than ${limit}, ${advice}.`
}

/** Describes the waiting state of a message, without the pauses that affect it. */
export function stateAlert(waiting: Waiting, seconds: number, { now, person }: Viewer): Alert {
  const { state, reason, attempts, last_response, next_attempt_at } = waiting
  const text = last_response ? { text: `Last response: ${last_response}` } : {}
  if (state === 'scheduled') return { tone: 'plain', title: 'Scheduled for', at: time(next_attempt_at, now) }
  if (state === 'suspended') return SUSPENDED_TEAM
  if (state === 'paused') return { tone: 'warn', title: reason ?? '', text: BULK_NEXT }
  if (state === 'failed') return { tone: 'bad', title: last_response ?? 'The server gave no reason' }
  if (state === 'in_flight') return { tone: 'busy', title: 'Being sent now', ...text }
  if (state === 'deferred') {
    if (reason !== null) return { tone: 'busy', title: reason, at: time(next_attempt_at, now) }
    const tried = attempts === 0 ? 'Not attempted yet' : `Attempted ${plural(attempts, 'time')}`
    return { tone: 'warn', title: `${tried}. Next attempt ${time(next_attempt_at, now).age}`, ...text }
  }
  const tone = seconds < 60 ? 'busy' : 'warn'
  if (state === 'lost') {
    const words = unclaimedWords(seconds >= 3_600, 'an hour', person.operator)
    return { tone, title: 'Its job was lost and is requeued automatically', text: words }
  }
  const words = unclaimedWords(seconds >= 60, 'a minute', person.operator)
  return { tone, title: 'Waiting for a worker', text: words }
}

type WaitingMessage = {
  created_at: string
  events: readonly { kind: string; detail: string }[]
  waiting?: Waiting | null
}

/** States that pauses don't affect: scheduled, failed or being sent. */
const WHATEVER_STOPS: readonly Waiting['state'][] = ['scheduled', 'failed', 'in_flight']

/**
 * Returns why a message waits. A pause replaces the wait for the next attempt, because no attempt starts
 * before it ends. The last response is added.
 */
export function mainReason(
  attempt: Alert,
  stops: readonly Alert[],
  { state, last_response }: Pick<Waiting, 'state' | 'last_response'>,
): Alert[] {
  if (stops.length === 0 || WHATEVER_STOPS.includes(state)) return [attempt]
  if (!last_response) return [...stops]
  const answer = `Last response: ${last_response}`
  return stops.map((stop, at) =>
    at > 0 || stop.text === last_response
      ? stop
      : { ...stop, text: [stop.text ?? '', answer].join(' ').trim() },
  )
}

/** Returns the widest reason that stops a message: the team, its queue, or its senders. @param pauses of those. */
export function findStops(waiting: Waiting, pauses: readonly Alert[]): readonly Alert[] {
  if (waiting.team_suspended) return [SUSPENDED_TEAM]
  return waiting.queue_paused ? [pausedQueue('Its queue', waiting.queue_pause_reason)] : pauses
}

/** Describes why a message hasn't been sent yet. Returns nothing if it has. */
export function waitingAlerts({ waiting, events, created_at }: WaitingMessage, viewer: Viewer): Alert[] {
  if (!waiting) return []
  const { now, person } = viewer
  const seconds = (now.getTime() - new Date(created_at).getTime()) / 1_000
  const response = events.findLast(({ kind, detail }) => kind === 'held' && detail === waiting.last_response)
  const said = { ...waiting, last_response: response ? wordsFor(viewer, response) : waiting.last_response }
  const attempt = stateAlert(said, seconds, viewer)
  const pauses = [...waiting.paused_senders, ...waiting.paused_for_recipient]
  const shown = person.operator
    ? pauses.map((pause) => pauseAlert(pause, now))
    : pauses.slice(0, 1).map(() => pausedDelivery('It is'))
  return mainReason(attempt, findStops(waiting, shown), said)
}
