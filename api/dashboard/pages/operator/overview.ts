/** The operator's overview: alerts, queues, senders, processes and checks. */

import { DELIVERIES } from '../../../../db/channels/channels.sql.ts'
import { listQueues, QUEUES, type ShownQueue } from '../../../../db/delivery/queues.ts'
import { countParked, lastReports } from '../../../../db/delivery/reports/reports.sql.ts'
import { listSenders, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { stoppedBroadcasts } from '../../../../db/messages/broadcasts/auto-pause.sql.ts'
import { plural } from '../../../../db/plural.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { PART_OF } from '../../../../db/queue/jobs.ts'
import { pausedQueues, type QueuePause, RESTORED } from '../../../../db/queue/pauses.sql.ts'
import { liveProcesses, type ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { LISTED_FOR_S } from '../../../../db/stats/fleet/fleet.ts'
import { type Cell, formatAge, number, status, text, time } from '../../components/cell.ts'
import type { Alert, Check, Section, Tile } from '../../components/section.ts'
import { pausedQueue, RESTORED_COPY } from '../../components/timeline.ts'
import { buildTable, button, compact, get } from '../../server/builders.ts'
import { show } from '../../server/page.ts'
import { foldAlerts, groupAlerts, senderState, stoppedBroadcastAlerts } from '../stopped.ts'
import { databaseState, faultAlerts, riskAlerts } from './database-state.ts'
import { buildChecklist, MAX_PARKED, summaryChecks } from './health-checks.ts'
import { pauseAlerts, reputationAlerts } from './overview-alerts.ts'
import { countStopping, type PauseEffects, pauseEffects } from './pause-effects.ts'
import { counted, isShown, isUnattended, queueCells, rate, waitingWords, workAlerts } from './queue-cells.ts'
import { queueName } from './queue-names.ts'
import { isLive, isWorking, versionAlerts } from './workers.ts'

const PATH = '/operator'
const MAX_STOPPED = 100

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`

const list = new Intl.ListFormat('en')
const listNames = (queues: readonly string[]): string => list.format(queues.map(queueName))

/** Describes the queues of a worker: all, all except a few, or only some. */
function queuesShown(queues: readonly string[]): string | false {
  const others = QUEUES.filter((queue) => !queues.includes(queue))
  if (others.length === 0) return 'all queues'
  if (queues.length === 0) return false
  return others.length < queues.length
    ? `all queues except ${listNames(others)}`
    : `only ${listNames(queues)}`
}

/** Builds the cell with a process. One that doesn't respond is marked. */
function processCell(process: ProcessRow, now: Date): Cell {
  const { kind, host, pid, queues, started_at, gauges } = process
  const detail = compact<string>([
    `host ${host}`,
    `process ${pid}`,
    kind === 'worker' && queuesShown(queues),
    gauges.version && `version ${gauges.version}`,
    `started ${formatAge(started_at, now)}`,
  ]).join(', ')
  return isLive(process) ? text(kind, { detail }) : status(`${kind}, not responding`, { tone: 'bad', detail })
}

/** Builds the cells of a process, without the load if it doesn't respond. */
const processShown =
  (now: Date) =>
  (process: ProcessRow): Record<string, Cell> => {
    const { busy, resident_memory_bytes: memory, event_loop_lag_seconds: lag } = process.gauges
    const load = text(`${Math.round(busy * 100)} %`, {
      number: true,
      detail: `lag ${Math.round(lag * 1_000)} ms`,
    })
    return {
      Process: processCell(process, now),
      'Last seen': time(process.seen_at, now),
      Busy: isLive(process) ? load : text('', { number: true }),
      Memory: text(megabytes(memory), { number: true }),
    }
  }

type Pauses = ReadonlyMap<string, QueuePause>

/** Returns the queues paused by operators, without their parts. */
const pausedByHand = (paused: Pauses): QueuePause[] =>
  [...paused.values()].filter(
    ({ queue, reason }) => reason !== RESTORED && !paused.has(PART_OF.get(queue) ?? ''),
  )

const isCopy = (paused: Pauses): boolean => [...paused.values()].some(({ reason }) => reason === RESTORED)

/** Returns alerts for paused queues. Those paused because the database is a copy share one alert. */
function queueAlerts(paused: Pauses): Alert[] {
  const link = { href: '/operator/queues', label: 'Show queues' }
  return compact([
    isCopy(paused) && { ...RESTORED_COPY, link },
    ...pausedByHand(paused).map(({ queue, reason }) => ({
      ...pausedQueue(`The queue ${queueName(queue)}`, reason),
      link,
    })),
  ])
}

function senderChecks(
  processes: readonly ProcessRow[],
  senders: readonly ShownSender[],
  effects: PauseEffects,
  now: Date,
): Check[] {
  const used = processes.filter(isLive).flatMap((process) => Object.values(process.senders))
  const stopped = senders.filter(({ state }) => state !== 'sending').map(({ key }) => key)
  return [...new Set([...used, ...stopped])].sort().map((key) => {
    const known = senders.find((sender) => sender.key === key)
    const isWell = known === undefined || known.state === 'sending'
    const at = known?.troubled_at ?? null
    const words = isWell ? (at === null ? 'no problems' : 'recovered') : senderState(known)
    return {
      label: known?.name ?? key,
      tone: isWell ? 'good' : (effects.get(known.name ?? key)?.tone ?? 'bad'),
      cell: text(words, { detail: isWell || at === null ? undefined : formatAge(at, now) }),
    }
  })
}

const isDelivery = ({ queue }: { queue: string }): boolean => DELIVERIES.some(({ job }) => job === queue)

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
      detail: waitingWords({ ready, deferred }, ready > 0 ? oldest : null) || 'nothing waits',
    },
    {
      label: 'Going out now',
      value: rate(sum((queue) => queue.completed_per_second)),
      detail: 'Both count messages and webhooks.',
    },
    {
      label: 'Failed',
      value: counted(dead).text,
      href: '/operator/queues',
      tone: dead > 0 ? 'warn' : undefined,
      detail: dead > 0 ? 'see why, and retry' : undefined,
    },
    { label: 'Workers', value: number(workers).text, tone: workers === 0 ? 'bad' : 'plain' },
  ]
}

function queuesTable(queues: readonly ShownQueue[], senders: readonly ShownSender[], now: Date): Section {
  const shown = queues.filter(isShown)
  const idle = queues.length - shown.length
  const label = idle > 0 ? `All queues (${idle} more are idle)` : 'All queues'
  return buildTable(shown, queueCells(now, senders), {
    title: 'Queues',
    id: 'queues',
    live: true,
    wrap: ['Queue'],
    empty: '',
    next: [{ href: '/operator/queues', label }],
  })
}

const sendersSection = (checks: readonly Check[]): Section =>
  buildChecklist('Senders', checks, {
    id: 'senders',
    live: true,
    empty: 'No worker is sending.',
    next: { href: '/operator/senders', label: 'Sender history' },
  })

const checksSection = (checks: readonly Check[]): Section =>
  buildChecklist('Checks', checks, {
    id: 'checks',
    live: true,
    next: { href: '/operator/health', label: 'All checks' },
  })

const countPaused = (count: number, noun: string): string | false =>
  count > 0 && `${plural(count, noun)} paused`

/** True for a queue without which some messages never go out. */
const stopsMessages = (each: { queue: string }): boolean =>
  isDelivery(each) || each.queue === 'expand-broadcast'

/** Returns the causes of a no. @param fault why the database can't be used, or null. */
const stopsOf = (
  fault: string | null,
  isWorked: boolean,
  paused: Pauses,
  counts: { unattended: number; senders: number; broadcasts: number },
): string[] =>
  compact<string>([
    fault !== null && 'the database can’t be used',
    !isWorked && 'no worker',
    isWorked && counts.unattended > 0 && `${plural(counts.unattended, 'queue')} without a worker`,
    isCopy(paused) && 'a restored copy',
    countPaused(pausedByHand(paused).filter(stopsMessages).length, 'queue'),
    countPaused(counts.senders, 'sender'),
    countPaused(counts.broadcasts, 'broadcast'),
  ])

/** Builds the answer to the title. @param stops the causes of a no. @param risks the number of risky settings. */
function answerCell(stops: readonly string[], risks: number): Cell {
  const [only] = stops
  if (stops.length > 1) return status(`no: ${plural(stops.length + risks, 'problem')}`, { tone: 'bad' })
  if (only !== undefined)
    return status(compact([`no: ${only}`, risks > 0 && plural(risks, 'risk')]).join(', '), { tone: 'bad' })
  return risks > 0
    ? status(`yes, but ${plural(risks, 'risk')}`, { tone: 'warn' })
    : status('yes', { tone: 'good' })
}

/** True if messages wait in a queue without a running worker. */
const isStuck = (queue: ShownQueue, now: Date): boolean =>
  stopsMessages(queue) && !queue.paused && isUnattended(queue, now)

/** Returns alerts for broadcasts of all teams that were paused automatically. */
const loadStopped = async (tx: Tx): Promise<Alert[]> =>
  stoppedBroadcastAlerts(await stoppedBroadcasts(tx, null, MAX_STOPPED), { ofTeams: true })

const loadReports = async (tx: Tx) => ({
  reports: await lastReports(tx),
  parked: await countParked(tx, MAX_PARKED),
})

const badOnly = (alerts: readonly Alert[]): Alert[] => alerts.filter(({ tone }) => tone === 'bad')

const overview = get('operator', PATH, async ({ now }, deps) => {
  const { database } = deps
  const processes = await liveProcesses(database, LISTED_FOR_S)
  const senders = await listSenders(database)
  const queues = await listQueues(database)
  const effects = await pauseEffects(database, senders)
  const stopped = await loadStopped(database)
  const database_state = await databaseState(database)
  const paused = await pausedQueues(database)
  const teams = await reputationAlerts(database)
  const linked = (alert: Alert) => ({ ...alert, link: { href: '/operator/health', label: 'Show health' } })
  const risks = badOnly(riskAlerts(database_state)).map(linked)
  const alerts = compact<Alert>([
    ...faultAlerts(database_state).map(linked),
    ...workAlerts(processes, queues, now),
    ...versionAlerts(processes, now),
    ...queueAlerts(paused),
    ...pauseAlerts(senders, effects, now),
    ...groupAlerts(stopped, `${stopped.length} broadcasts were paused automatically`),
    ...groupAlerts(teams, `${teams.length} teams are above the limits of mailbox providers`),
    ...risks,
  ])
  const stops = stopsOf(database_state.fault, processes.some(isWorking), paused, {
    unattended: queues.filter((each) => isStuck(each, now)).length,
    senders: countStopping(effects),
    broadcasts: stopped.length,
  })
  return show({
    title: 'Is everything going out?',
    state: answerCell(stops, risks.length + teams.length),
    actions: { forms: [button('/operator/health/check', 'Check the relay', { tone: 'quiet' })] },
    above: [
      { kind: 'alerts', id: 'needs', live: true, alerts: foldAlerts(alerts), calm: 'Nothing is stuck.' },
    ],
    sections: [
      queuesTable(queues, senders, now),
      buildTable(processes, processShown(now), {
        title: 'Processes',
        id: 'processes',
        live: true,
        wrap: ['Process'],
        empty: 'No process has been seen in the last hour.',
      }),
    ],
    aside: [
      { kind: 'tiles', id: 'figures', live: true, tiles: tiles(queues, processes) },
      sendersSection(senderChecks(processes, senders, effects, now)),
      checksSection(summaryChecks(deps, database_state, await loadReports(database), now)),
    ],
  })
})

export const operatorOverviewPages = [overview]
