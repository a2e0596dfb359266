/** Whether everything is going out: what stands, what waits, and who works on it. The first page of an operator. */

import { DELIVERIES } from '../../../../db/channels/channels.sql.ts'
import { listQueues, QUEUES, type ShownQueue } from '../../../../db/delivery/queues.ts'
import { listSenders, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { stoppedBroadcasts } from '../../../../db/messages/broadcasts/auto-pause.sql.ts'
import { pausedQueues, type QueuePause, RESTORED } from '../../../../db/queue/pauses.sql.ts'
import { liveProcesses, type ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { FORGOTTEN_AFTER_S, SILENT_AFTER_S } from '../../../../db/stats/fleet/fleet.ts'
import { type Cell, duration, number, plural, status, text, time } from '../../components/cell.ts'
import type { Alert, Tile } from '../../components/section.ts'
import { pausedQueue, RESTORED_COPY } from '../../components/timeline.ts'
import { compact, get, tableOf } from '../../server/builders.ts'
import { show } from '../../server/page.ts'
import { groupAlerts, pausedSenderAlerts, stoppedBroadcastAlerts } from '../stopped.ts'
import { counted, rate } from './queues.ts'

const PATH = '/operator'
/** The most broadcasts that are named. */
const MAX_STOPPED = 100

const isLive = ({ silent_seconds }: ProcessRow): boolean => silent_seconds <= SILENT_AFTER_S

const isWorking = (process: ProcessRow): boolean => process.kind === 'worker' && isLive(process)

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`

/** The queues of a process, by what it leaves alone where that is shorter. */
function queuesShown(queues: readonly string[]): string | null {
  const others = QUEUES.filter((queue) => !queues.includes(queue))
  if (others.length === 0) return 'all'
  return (others.length < queues.length ? `all but ${others.join(', ')}` : queues.join(', ')) || null
}

const processShown =
  (now: Date) =>
  ({ kind, host, pid, queues, gauges, seen_at, silent_seconds }: ProcessRow): Record<string, Cell> => ({
    Process: text(kind, { detail: `${host}, ${pid}` }),
    Queues: text(queuesShown(queues)),
    Busy: text(`${Math.round(gauges.busy * 100)} %`, { number: true }),
    Memory: text(megabytes(gauges.resident_memory_bytes), { number: true }),
    Lag: text(`${Math.round(gauges.event_loop_lag_seconds * 1_000)} ms`, { number: true }),
    'Last sign of life': { ...time(seen_at, now), tone: silent_seconds > SILENT_AFTER_S ? 'bad' : undefined },
  })

const NO_WORKER: Alert = {
  tone: 'bad',
  title: 'No worker is running',
  text: 'Nothing is sent, and no report is taken in. Start one: see “worker” in the Procfile.',
}

/** A sender that a live worker delivers through, and cannot: as the workers' own tries found it. */
const senderAlerts = (senders: readonly ShownSender[]): Alert[] =>
  pausedSenderAlerts(senders, ({ key }) => ({
    tone: 'bad',
    title: `${key} takes nothing`,
    link: { href: '/operator/senders', label: 'What happened, and how to resume' },
  }))

/** Queues that somebody paused, and perhaps forgot; in one alert those of a copy of the database. */
function queueAlerts(paused: ReadonlyMap<string, QueuePause>): Alert[] {
  const all = [...paused.values()]
  const others = all.filter(({ reason }) => reason !== RESTORED)
  const link = { href: '/operator/queues', label: 'Queues, and how to resume it' }
  return compact([
    others.length < all.length && { ...RESTORED_COPY, link },
    ...others.map(({ queue, reason }) => ({ ...pausedQueue(queue, reason), link })),
  ])
}

/** Each sender that live workers deliver through, or that stands, with how it is. */
function sendersShown(processes: readonly ProcessRow[], senders: readonly ShownSender[], now: Date) {
  const used = processes.filter(isLive).flatMap((process) => Object.values(process.senders))
  const stopped = senders.filter(({ state }) => state !== 'sending').map(({ key }) => key)
  return [...new Set([...used, ...stopped])].sort().map((key) => {
    const known = senders.find((sender) => sender.key === key)
    return {
      Sender: text(key),
      State: known ? status(known.state) : status('no problems yet', { tone: 'good' }),
      'Last problem': time(known?.troubled_at ?? null, now),
    }
  })
}

const isDelivery = ({ queue }: ShownQueue): boolean => DELIVERIES.some(({ job }) => job === queue)

/** What waits now, and what waits for its next attempt. @param oldest in seconds. */
function waitingWords(ready: number, deferred: number, oldest: number): string {
  const words = [
    ready > 0 && `the oldest for ${duration(oldest)}`,
    deferred > 0 && `${counted(deferred).text} deferred`,
  ]
  return compact<string>(words).join(', ') || 'nothing waits'
}

/** What waits for delivery, how fast it goes out, what was given up, and who is at work. */
function tiles(queues: readonly ShownQueue[], processes: readonly ProcessRow[]): Tile[] {
  const out = queues.filter(isDelivery)
  const sum = (of: (queue: ShownQueue) => number) => out.reduce((all, queue) => all + of(queue), 0)
  const [ready, deferred] = [sum((queue) => queue.ready), sum((queue) => queue.deferred)]
  const oldest = Math.max(0, ...out.map((queue) => queue.oldest_ready_seconds ?? 0))
  const dead = sum((queue) => queue.dead)
  const workers = processes.filter(isWorking).length
  return [
    {
      label: 'Waiting to go out',
      value: counted(ready + deferred).text,
      detail: waitingWords(ready, deferred, oldest),
    },
    { label: 'Going out now', value: rate(sum((queue) => queue.completed_per_second)) },
    {
      label: 'Given up',
      value: counted(dead).text,
      href: '/operator/queues',
      tone: dead > 0 ? 'warn' : undefined,
      detail: dead > 0 ? 'dead letters: see why, and try again' : undefined,
    },
    { label: 'Workers', value: number(workers).text, tone: workers === 0 ? 'bad' : 'plain' },
  ]
}

/** The queues in which something waits, runs or was given up, or that are paused. */
const busyQueues = (queues: readonly ShownQueue[]): ShownQueue[] =>
  queues.filter(({ ready, active, deferred, dead, paused }) => paused || ready + active + deferred + dead > 0)

const queueShown = (queue: ShownQueue): Record<string, Cell> => ({
  Queue: queue.paused ? status(`${queue.queue}, paused`, { tone: 'warn' }) : text(queue.queue),
  Ready: counted(queue.ready),
  Active: number(queue.active),
  Deferred: counted(queue.deferred),
  Dead: { ...counted(queue.dead), href: queue.dead > 0 ? `/operator/queues/${queue.queue}` : undefined },
  'Oldest waits': text(queue.oldest_ready_seconds === null ? null : duration(queue.oldest_ready_seconds), {
    number: true,
  }),
  Done: text(rate(queue.completed_per_second), { number: true }),
})

const overview = get('operator', PATH, async ({ now }, { database }) => {
  const processes = await liveProcesses(database, FORGOTTEN_AFTER_S)
  const senders = await listSenders(database)
  const queues = await listQueues(database)
  const stopped = stoppedBroadcastAlerts(await stoppedBroadcasts(database, null, MAX_STOPPED), true)
  const alerts = compact([
    !processes.some(isWorking) && NO_WORKER,
    ...queueAlerts(await pausedQueues(database)),
    ...senderAlerts(senders),
    ...groupAlerts(stopped, `${stopped.length} broadcasts have paused themselves`),
  ])
  const used = sendersShown(processes, senders, now)
  return show({
    title: 'Is everything going out?',
    state:
      alerts.length === 0
        ? status('yes', { tone: 'good' })
        : status(plural(alerts.length, 'alert'), { tone: 'bad' }),
    sections: [
      { kind: 'alerts', id: 'alerts', live: true, alerts, calm: 'Nothing is stuck.' },
      { kind: 'tiles', id: 'figures', live: true, tiles: tiles(queues, processes) },
      tableOf(busyQueues(queues), queueShown, {
        title: 'Queues',
        id: 'queues',
        live: true,
        empty: 'Every queue is empty.',
        next: [{ href: '/operator/queues', label: 'All queues' }],
      }),
      tableOf(used, (sender) => sender, {
        title: 'Senders',
        id: 'senders',
        live: true,
        empty: 'No worker is delivering anything.',
        next: [{ href: '/operator/senders', label: 'History of senders' }],
      }),
      tableOf(processes, processShown(now), {
        title: 'Processes',
        id: 'processes',
        live: true,
        empty: 'No process has given a sign of life within an hour.',
      }),
    ],
  })
})

export const operatorOverviewPages = [overview]
