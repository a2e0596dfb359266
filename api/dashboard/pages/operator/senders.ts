/** Lists senders (relays, accounts and numbers) with their state and history, and resumes them. */

import { deliveryOfSender } from '../../../../db/channels/channels.sql.ts'
import { withParts } from '../../../../db/delivery/queues.ts'
import { listSenders, resumeSender, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { pausedEndpoints } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { waitingOfTeams } from '../../../../db/queue/jobs.sql.ts'
import { type Cell, countdown, plural, status, text, time } from '../../components/cell.ts'
import type { Section } from '../../components/section.ts'
import { action, buildTable, buttonCell, compact, get } from '../../server/builders.ts'
import { redirect, show, teamPath } from '../../server/page.ts'

const PATH = '/operator/senders'

const WEBHOOKS_SHOWN = 50

const resumeButton = (key: string): Cell =>
  buttonCell(`${PATH}/resume?${new URLSearchParams({ key })}`, 'Resume now')

const stateCell = ({ state, rate }: ShownSender): Cell =>
  status(state, { detail: state === 'slowed' ? `${rate.toFixed(1)} per second` : undefined })

const TITLES: Readonly<Record<string, string>> = {
  slowed: 'It was slowed down',
  paused: 'It was paused',
  recovered: 'It accepts messages again',
  resumed: 'An operator resumed it',
}

const timeline = ({ key, events }: ShownSender, now: Date): Section => ({
  kind: 'timeline',
  title: key,
  moments: events.map(({ time: at, kind, detail }) => ({
    tone: kind === 'paused' ? 'bad' : kind === 'slowed' ? 'warn' : 'good',
    title: TITLES[kind] ?? kind,
    at: time(at, now),
    detail,
  })),
  empty: 'No recent events.',
})

/** Lists paused webhook endpoints of teams separately, so that they don't hide our senders. */
const waitingFor = (endpoints: Awaited<ReturnType<typeof pausedEndpoints>>, now: Date): Section =>
  buildTable(
    endpoints,
    ({ key, team_id, team, id, name, paused_until, reason }) => ({
      Webhook: text(name, { href: teamPath({ id: team_id }, 'webhooks', id) }),
      Team: text(team),
      Until: time(paused_until, now),
      Why: text(reason),
      Resume: resumeButton(key),
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

/** Maximum count of waiting messages. */
const MAX_COUNTED = 10_000

/** Counts the messages, and their teams, that wait for each paused sender. */
async function countWaiting(tx: Tx, rows: readonly ShownSender[]): Promise<ReadonlyMap<string, string>> {
  const words = new Map<string, string>()
  for (const { key, name, state } of rows) {
    const { channel, group } = deliveryOfSender(key, name)
    if (state === 'sending' || state === 'slowed') continue
    const { jobs, teams } = await waitingOfTeams(tx, withParts(channel.job), { group, most: MAX_COUNTED })
    const atLeast = jobs < MAX_COUNTED ? '' : 'at least '
    words.set(key, `${atLeast}${plural(jobs, channel.noun)} of ${plural(teams, 'team')}`)
  }
  return words
}

const senders = get('operator', PATH, async ({ now }, { database }) => {
  const rows = await listSenders(database)
  const waits = await countWaiting(database, rows)
  const endpoints = await pausedEndpoints(database, WEBHOOKS_SHOWN)
  return show({
    title: 'Senders',
    lead: 'Relays, accounts and numbers that were ever rate-limited, slowed or paused. Messages of a paused sender wait, and nothing is lost.',
    sections: compact([
      buildTable(
        rows,
        (sender) => ({
          Sender: text(sender.key, { detail: sender.name ?? undefined }),
          State: stateCell(sender),
          'Next attempt': text(sender.paused_until && countdown(sender.paused_until, now)),
          Waiting: text(waits.get(sender.key) ?? null),
          'Provider response': text(sender.reason),
          Resume: sender.paused_until === null ? text('') : resumeButton(sender.key),
        }),
        {
          id: 'senders',
          live: true,
          wrap: ['Provider response'],
          empty: 'No sender was ever paused or slowed.',
        },
      ),
      endpoints.length > 0 && waitingFor(endpoints, now),
      ...rows.map((sender) => timeline(sender, now)),
    ]),
  })
})

const resume = action('operator', `${PATH}/resume`, async (by, request) => {
  const key = request.query.get('key') ?? ''
  await resumeSender(by, key)
  return redirect(PATH, `${key} is resumed.`)
})

export const senderPages = [senders, resume]
