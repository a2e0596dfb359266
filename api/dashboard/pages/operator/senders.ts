/** Lists senders (relays, accounts and numbers) with their state and history, and resumes them. */

import { deliveryOfSender } from '../../../../db/channels/channels.sql.ts'
import { withParts } from '../../../../db/delivery/queues.ts'
import { listSenders, resumeSender, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { pausedEndpoints } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import { plural } from '../../../../db/plural.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { waitingOfTeams } from '../../../../db/queue/jobs.sql.ts'
import { type Cell, countdown, formatAge, status, type Tone, text, time } from '../../components/cell.ts'
import type { Section } from '../../components/section.ts'
import { action, buildTable, buttonCell, compact, get } from '../../server/builders.ts'
import { redirect, show, teamPath } from '../../server/page.ts'
import { senderState } from '../stopped.ts'

const PATH = '/operator/senders'

const WEBHOOKS_SHOWN = 50

/** Shown if no message waits for a sender. */
export const NOTHING_WAITS = 'nothing'

const resumeButton = (key: string): Cell =>
  buttonCell(`${PATH}/resume?${new URLSearchParams({ key })}`, 'Resume now', { tone: 'quiet' })

const nameCell = ({ key, name }: ShownSender): Cell =>
  name === null
    ? text(key)
    : text(name, { detail: key, href: name === 'default' ? undefined : `/operator/numbers/${name}` })

/** Lists senders that send normally again, with their last problem. */
const wellSection = (senders: readonly ShownSender[], now: Date): Section =>
  buildTable(
    senders,
    (sender) => ({
      Sender: nameCell(sender),
      'Last change': time(sender.events[0]?.time ?? null, now, 'none'),
    }),
    { title: `${plural(senders.length, 'sender')} without problems now`, id: 'well', fold: true, empty: '' },
  )

const isHeld = ({ paused_until }: ShownSender): boolean => paused_until !== null

/** Returns since when a sender has been in its state, or null if it sends normally. */
function since({ state, troubled_at, events }: ShownSender): string | null {
  if (state === 'sending') return null
  const kind = state === 'slowed' ? 'slowed' : 'paused'
  return (
    (state === 'slowed' ? null : troubled_at) ?? events.find((event) => event.kind === kind)?.time ?? null
  )
}

/** Builds the cell with the state of a sender and since when it has had it. @param waiting the waiting messages. */
function stateCell(sender: ShownSender, waiting: string | undefined, now: Date): Cell {
  const { state, rate } = sender
  const from = since(sender)
  const detail = compact<string>([
    from !== null && `${state === 'probing' ? 'paused ' : ''}${formatAge(from, now)}`,
    state === 'slowed' && `${rate.toFixed(1)} per second`,
  ])
  const cell = status(state, { text: senderState(sender), detail: detail.join(', ') || undefined })
  return waiting === NOTHING_WAITS ? { ...cell, tone: 'warn' } : cell
}

const EVENTS: Readonly<Record<string, string>> = {
  recovered: 'accepts messages again',
  resumed: 'resumed by an operator',
}
const TONES: Readonly<Record<string, Tone>> = { paused: 'bad', slowed: 'warn' }

const MAX_EVENTS = 50

/** Lists the latest events of all senders, newest first. */
function historySection(senders: readonly ShownSender[], now: Date): Section {
  const events = senders
    .flatMap(({ key, name, events }) => events.map((event) => ({ ...event, sender: name ?? key })))
    .sort((one, other) => Date.parse(other.time) - Date.parse(one.time))
    .slice(0, MAX_EVENTS)
  return buildTable(
    events,
    ({ time: at, sender, kind, detail }) => ({
      When: time(at, now),
      Sender: text(sender),
      Event: status(EVENTS[kind] ?? kind, { tone: TONES[kind] ?? 'good' }),
      Reason: text(detail),
    }),
    { title: 'History', id: 'history', main: 'Sender', grow: [], wrap: ['Reason'], empty: 'No events.' },
  )
}

/** Lists paused webhook endpoints of teams separately, so that they don't hide our senders. */
const waitingFor = (endpoints: Awaited<ReturnType<typeof pausedEndpoints>>, now: Date): Section =>
  buildTable(
    endpoints,
    ({ key, team_id, team, id, name, paused_until, reason }) => ({
      Webhook: text(name, { href: teamPath({ id: team_id }, 'webhooks', id) }),
      Team: text(team),
      Until: time(paused_until, now),
      Why: text(reason),
      '': resumeButton(key),
    }),
    {
      id: 'webhooks',
      title: 'Paused webhooks',
      grow: ['Webhook', 'Why'],
      note: `The servers of these webhooks asked us to wait. Other webhooks aren’t affected. At most ${WEBHOOKS_SHOWN} are listed.`,
      live: true,
      empty: '',
    },
  )

const MAX_COUNTED = 10_000

/** Counts the messages, and their teams, that wait for each paused sender. */
export async function countWaiting(
  tx: Tx,
  rows: readonly ShownSender[],
): Promise<ReadonlyMap<string, string>> {
  const words = new Map<string, string>()
  for (const { key, name, state } of rows) {
    const { channel, group } = deliveryOfSender(key, name)
    if (state === 'sending' || state === 'slowed') continue
    const { jobs, teams } = await waitingOfTeams(tx, withParts(channel.job), { group, most: MAX_COUNTED })
    const atLeast = jobs < MAX_COUNTED ? '' : 'at least '
    const count = `${atLeast}${plural(jobs, channel.noun)} of ${plural(teams, 'team')}`
    words.set(key, jobs === 0 ? NOTHING_WAITS : count)
  }
  return words
}

const senders = get('operator', PATH, async ({ now }, { database }) => {
  const rows = await listSenders(database)
  const waits = await countWaiting(database, rows)
  const endpoints = await pausedEndpoints(database, WEBHOOKS_SHOWN)
  const held = rows.filter(({ state }) => state !== 'sending')
  return show({
    title: 'Senders',
    lead: 'Lists senders that have been slowed or paused. Messages wait while a sender is paused, and nothing is lost.',
    sections: compact([
      buildTable(
        held,
        (sender) => ({
          Sender: nameCell(sender),
          State: stateCell(sender, waits.get(sender.key), now),
          'Next attempt': text(sender.paused_until && countdown(sender.paused_until, now)),
          Waiting: text(waits.get(sender.key) ?? null),
          'Provider response': text(sender.reason),
          '': held.some(isHeld) && (isHeld(sender) ? resumeButton(sender.key) : text('')),
        }),
        {
          id: 'senders',
          live: true,
          grow: [],
          wrap: ['Sender', 'State', 'Waiting', 'Provider response'],
          empty:
            rows.length > 0 ? 'No sender is slowed or paused now.' : 'No sender has been slowed or paused.',
        },
      ),
      endpoints.length > 0 && waitingFor(endpoints, now),
      held.length < rows.length &&
        wellSection(
          rows.filter(({ state }) => state === 'sending'),
          now,
        ),
      rows.length > 0 && historySection(rows, now),
    ]),
  })
})

const resume = action('operator', `${PATH}/resume`, async (by, request) => {
  const key = request.query.get('key') ?? ''
  await resumeSender(by, key)
  return redirect(PATH, `${key} is resumed.`)
})

export const senderPages = [senders, resume]
