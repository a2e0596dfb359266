/**
 * Scheduled messages of any channel: their state, the form that reschedules one, and the button that cancels
 * it. requeue.ts sends them now.
 */
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { scheduledOfTeam } from '../../../db/delivery/schedule.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { assertScheduled, cancelScheduled, moveScheduled } from '../../../db/messages/scheduled.ts'
import type { StatRow } from '../../../db/stats/daily/stats.sql.ts'
import { isMoment } from '../../../db/validation/moments.ts'
import { type Cell, formatAge, status } from '../components/cell.ts'
import type { Form, Section } from '../components/section.ts'
import { momentWords, parseLocalTime, parseZone, toLocalTime } from '../components/zone.ts'
import { action, buildForm, button, field, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, type TeamPage, type TeamRequest, teamPath } from '../server/page.ts'

/** The value for scheduled messages in a filter, in addition to the statuses. */
export const SCHEDULED_STATUS = 'scheduled' as const

/** Converts the value of a status chip to a filter. */
export const statusFilter = <W extends string>(
  word: W | undefined,
): { status?: Exclude<W, typeof SCHEDULED_STATUS> | undefined; scheduled?: true } =>
  word === SCHEDULED_STATUS
    ? { scheduled: true }
    : // The condition excludes it.
      { status: word as Exclude<W, typeof SCHEDULED_STATUS> | undefined }

/** Maximum count of a team's scheduled messages. */
const MAX_COUNTED = 100_000

type StatusCount = Pick<StatRow, 'status' | 'count'>

/** Splits the count of queued messages into queued and scheduled ones. */
export async function scheduledApart(
  { team }: TeamRequest,
  { database }: PageDeps,
  channel: Channel,
  figures: readonly StatusCount[],
): Promise<StatusCount[]> {
  const { messages } = await scheduledOfTeam(database, team.id, channel, MAX_COUNTED)
  const queued = figures.reduce((sum, { status: word, count }) => sum + (word === 'queued' ? count : 0), 0)
  return [
    ...figures.filter(({ status: word }) => word !== 'queued'),
    { status: 'queued', count: Math.max(0, queued - messages) },
    { status: SCHEDULED_STATUS, count: messages },
  ]
}

/** The number of scheduled messages of a channel, and when the first is due. */
type ScheduledCount = { channel: Channel; messages: number; next: string }

/** Returns the channels with scheduled messages. */
export async function scheduledMessages(team: { id: string }, { database }: PageDeps) {
  const all: ScheduledCount[] = []
  for (const channel of CHANNELS) {
    const { messages, next } = await scheduledOfTeam(database, team.id, channel, MAX_COUNTED)
    if (messages > 0 && next !== null) all.push({ channel, messages, next })
  }
  return all
}

/** The fields of a message that show if it is scheduled. */
type ScheduledFields = {
  status: string
  scheduled_at?: string
  waiting?: { state: string; next_attempt_at: string | null }
}

type StateFields = { status: string; provider_message_id?: string | null }

const dueAt = ({ waiting }: ScheduledFields): string | null =>
  waiting?.state === 'scheduled' ? waiting.next_attempt_at : null

/** Returns the state of a message. A queued one with a provider's ID was accepted. */
const stateWord = ({ status: word, provider_message_id: provider }: StateFields, ended?: string): string =>
  ended ?? (word === 'queued' && provider ? 'accepted' : word)

/**
 * Builds the state next to the title.
 * @param ended how it ended, if it was never sent.
 */
export function shownState(message: ScheduledFields & StateFields, ended?: string): Cell {
  if (dueAt(message) !== null) return status('scheduled')
  const isSending = message.waiting?.state === 'in_flight' && message.status === 'queued'
  return isSending ? status('sending', { tone: 'busy' }) : status(stateWord(message, ended))
}

/**
 * Builds the state in a list. A queued message is scheduled if its time is in the future.
 * @param ended how it ended, if it was never sent.
 */
export function listedState(
  message: StateFields & { scheduled_at?: string | null | undefined },
  now: Date,
  ended?: string,
): Cell {
  const { status: word, scheduled_at = null } = message
  if (word !== 'queued' || ended || scheduled_at === null || Date.parse(scheduled_at) <= now.getTime())
    return status(stateWord(message, ended))
  return status('scheduled', { text: `scheduled ${formatAge(scheduled_at, now)}` })
}

/**
 * Builds the button that cancels a scheduled message.
 * @param noun such as `email`.
 * @param path the path of the message's page.
 */
export const cancelForm = (message: ScheduledFields, noun: string, path: string): Form | false =>
  dueAt(message) !== null && button(`${path}/cancel`, `Cancel this ${noun}`, { tone: 'danger' })

export function moveForm(message: ScheduledFields, path: string, given: string | undefined): Section | null {
  const due = dueAt(message)
  if (due === null) return null
  const zone = parseZone(given)
  const fields = [
    field('scheduled_at', `Send at (${zone} time)`, {
      type: 'datetime-local',
      required: true,
      value: toLocalTime(due, zone),
    }),
    hidden('zone', zone, true),
    hidden('shown', due, true),
  ]
  return buildForm(`${path}/move`, 'Save new time', { title: 'Reschedule', folded: 'quiet', fields })
}

/** Defines the actions that cancel and reschedule a message. @param noun such as `email`. */
export const scheduledActs = ({ name: channel, path }: Channel, noun: string): TeamPage[] => [
  action('editor', `/teams/:team/${path}/:id/cancel`, async (by, { team, params }) => {
    await cancelScheduled(by, { channel, team_id: team.id, id: params.id })
    return redirect(teamPath(team, path), `The ${noun} was cancelled and won’t be sent.`)
  }).confirm(async ({ team, params }, { database }) => {
    await assertScheduled(database, { channel, team_id: team.id, id: params.id })
    const question = `Cancel this ${noun}? It is deleted and never sent.`
    return { question, answer: `Cancel this ${noun}`, tone: 'danger' }
  }),
  action('editor', `/teams/:team/${path}/:id/move`, async (by, { team, params, form }: TeamRequest<'id'>) => {
    const zone = parseZone(form.get('zone') ?? undefined)
    const id = params.id
    const [typed, shown] = [form.get('scheduled_at') ?? '', form.get('shown') ?? '']
    // The field has no seconds and can't tell a repeated hour apart, so an unchanged value must not
    // reschedule.
    if (isMoment(shown) && typed === toLocalTime(shown, zone))
      return redirect(teamPath(team, path, id), 'No changes to save.')
    const time = parseLocalTime(typed, zone)
    if (!isMoment(time)) throw invalidField('scheduled_at', 'must be a date and a time')
    const { scheduled_at } = await moveScheduled(by, { channel, team_id: team.id, id }, time)
    return redirect(teamPath(team, path, id), `Rescheduled to ${momentWords(scheduled_at, zone)}.`)
  }),
]
