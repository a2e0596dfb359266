/**
 * What waits for its time, on the page of a message of any channel: the chip that says so, the form that moves
 * it, the button that cancels it. That it is sent now is requeue.ts's.
 */
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { scheduledOfTeam } from '../../../db/delivery/schedule.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { cancelScheduled, moveScheduled } from '../../../db/messages/scheduled.ts'
import type { FigureRow } from '../../../db/stats/daily/stats.sql.ts'
import { isMoment } from '../../../db/validation/moments.ts'
import { ageOf, type Cell, status } from '../components/cell.ts'
import type { Form, Section } from '../components/section.ts'
import { momentOf, momentWords, typedOf, zoneOf } from '../components/zone.ts'
import { act, field, formOf, hidden, press } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, type TeamPage, type TeamRequest, teamPath } from '../server/page.ts'

/** How a filter calls what waits for its time, beside the statuses. */
export const SCHEDULED_STATUS = 'scheduled' as const

/** What the word of a list's chip means. */
export const statusFilter = <W extends string>(
  word: W | undefined,
): { status?: Exclude<W, typeof SCHEDULED_STATUS> | undefined; scheduled?: true } =>
  word === SCHEDULED_STATUS
    ? { scheduled: true }
    : // As the condition says.
      { status: word as Exclude<W, typeof SCHEDULED_STATUS> | undefined }

/** How many of a team's messages are counted that wait for their time. */
const MAX_COUNTED = 100_000

type Figure = Pick<FigureRow, 'status' | 'count'>

/** The figures of a list, with what waits for its time apart from what is queued. */
export async function scheduledApart(
  { team }: TeamRequest,
  { database }: PageDeps,
  channel: Channel,
  figures: readonly Figure[],
): Promise<Figure[]> {
  const { messages } = await scheduledOfTeam(database, team.id, channel, MAX_COUNTED)
  const queued = figures.reduce((sum, { status: word, count }) => sum + (word === 'queued' ? count : 0), 0)
  return [
    ...figures.filter(({ status: word }) => word !== 'queued'),
    { status: 'queued', count: Math.max(0, queued - messages) },
    { status: SCHEDULED_STATUS, count: messages },
  ]
}

/** Messages of a channel that wait for their time: how many, and when the first is due. */
type Scheduled = { channel: Channel; messages: number; next: string }

/** What waits for its time, of each channel that has such messages. */
export async function scheduledMessages(team: { id: string }, { database }: PageDeps): Promise<Scheduled[]> {
  const all: Scheduled[] = []
  for (const channel of CHANNELS) {
    const { messages, next } = await scheduledOfTeam(database, team.id, channel, MAX_COUNTED)
    if (messages > 0 && next !== null) all.push({ channel, messages, next })
  }
  return all
}

/** A message, as far as it waits for its time. */
type Waits = {
  status: string
  scheduled_at?: string
  waiting?: { state: string; next_attempt_at: string | null }
}

const dueAt = ({ waiting }: Waits): string | null =>
  waiting?.state === 'scheduled' ? waiting.next_attempt_at : null

/** The chip beside the title. */
export const shownState = (message: Waits): Cell =>
  status(dueAt(message) === null ? message.status : 'scheduled')

/** The chip in a list: its time says whether it waits. */
export function listedState(
  { status: word, scheduled_at = null }: { status: string; scheduled_at?: string | null | undefined },
  now: Date,
): Cell {
  if (word !== 'queued' || scheduled_at === null || Date.parse(scheduled_at) <= now.getTime())
    return status(word)
  return status('scheduled', { text: `scheduled ${ageOf(scheduled_at, now)}` })
}

/** The button that cancels. @param noun such as `email`. @param path of the message's page. */
export const cancelForm = (message: Waits, noun: string, path: string): Form | false =>
  dueAt(message) !== null && press(`${path}/cancel`, `Cancel this ${noun}`, { tone: 'danger' })

export function moveForm(message: Waits, path: string, given: string | undefined): Section | null {
  const due = dueAt(message)
  if (due === null) return null
  const zone = zoneOf(given)
  const fields = [
    field('scheduled_at', `Send at (${zone} time)`, {
      type: 'datetime-local',
      required: true,
      value: typedOf(due, zone),
    }),
    hidden('zone', zone, true),
    hidden('shown', due, true),
  ]
  return formOf(`${path}/move`, 'Save new time', fields, { title: 'Move to another time', folded: true })
}

/** What the two do. @param noun a message on these pages. */
export const scheduledActs = ({ name: channel, path }: Channel, noun: string): TeamPage[] => [
  act(
    'editor',
    `/teams/:team/${path}/:id/cancel`,
    async (by, { team, params }) => {
      await cancelScheduled(by, { channel, team_id: team.id, id: params.id })
      return redirect(teamPath(team, path), `The ${noun} is cancelled: it will not be sent.`)
    },
    () => ({
      question: `Cancel this ${noun}? It is gone then, and never sent.`,
      answer: `Cancel this ${noun}`,
      tone: 'danger',
    }),
  ),
  act('editor', `/teams/:team/${path}/:id/move`, async (by, { team, params, form }: TeamRequest<'id'>) => {
    const zone = zoneOf(form.get('zone') ?? undefined)
    const id = params.id
    const [typed, shown] = [form.get('scheduled_at') ?? '', form.get('shown') ?? '']
    // The field has no seconds, and an hour that summer time has twice only once: left alone it moves nothing.
    if (isMoment(shown) && typed === typedOf(shown, zone))
      return redirect(teamPath(team, path, id), 'Nothing was changed.')
    const time = momentOf(typed, zone)
    if (!isMoment(time)) throw invalidField('scheduled_at', 'must be a date and a time')
    const { scheduled_at } = await moveScheduled(by, { channel, team_id: team.id, id }, time)
    return redirect(teamPath(team, path, id), `It goes ${momentWords(scheduled_at, zone)}.`)
  }),
]
