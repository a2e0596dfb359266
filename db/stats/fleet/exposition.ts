/**
 * The metrics of the complete fleet in Prometheus's text format. Every web process returns the same series. Counters
 * never decrease while the database exists.
 */
import type { ReturnPathCheck } from '../../accounts/domains/return-path.ts'
import { countBulkPaused } from '../../accounts/teams/reputation.sql.ts'
import { percentOf } from '../../accounts/teams/reputation.ts'
import type { Database } from '../../postgres/pool.ts'
import { NO_REPLICA, type Replica } from '../../postgres/replica.ts'
import { METRICS } from '../../process/metrics.ts'
import { MAX_COUNTED, type QueueStatus, queueStatus } from '../../queue/jobs.sql.ts'
import { pausedQueues, RESTORED } from '../../queue/pauses.sql.ts'
import { keysOf } from '../../validation/keys.ts'
import { type SendingOfTeam, sendingOfLastDay } from '../daily/sending.sql.ts'
import {
  broadcastStates,
  type CounterRow,
  fleetCounters,
  liveProcesses,
  numberQualities,
  openReports,
  type ProcessRow,
  queuedByAge,
  type SenderStats,
  scheduledMessages,
  senderStates,
} from './fleet.sql.ts'
import { SILENT_AFTER_S } from './fleet.ts'
import { misconfiguredSenders } from './sender-reports.sql.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Waiting messages are counted by these ages, in seconds. */
const AGES = [0, 60, 600, 3_600, 86_400]
const JOB_STATES = ['ready', 'active', 'deferred', 'failed', 'dead'] as const

/** Metrics that are read at the time of the request. */
export const GAUGES = {
  heliograph_processes: 'Processes that have reported in the last 20 seconds.',
  heliograph_build_info: 'Versions of Heliograph and Node that are running (1 for each).',
  heliograph_event_loop_lag_seconds: 'Event loop delay, p99 of the slowest process.',
  heliograph_resident_memory_bytes: 'Memory of the largest process.',
  heliograph_database_connections: 'Database connections: in use, maximum, and callers waiting for one.',
  heliograph_worker_busy_ratio: 'Average utilization of the workers, from 0 to 1.',
  heliograph_senders: 'Paused and slowed relays, accounts and numbers, by state.',
  heliograph_whatsapp_numbers: 'WhatsApp numbers other than the default one, by quality rating.',
  heliograph_queued_messages: `Messages that no provider has accepted yet, and that are older than the age in the label (in seconds). Counted up to ${MAX_COUNTED}.`,
  heliograph_scheduled_messages: "Scheduled messages. They aren't due yet.",
  heliograph_queue_jobs: `Jobs by queue and state, counted up to ${MAX_COUNTED} each. \`dead\` are dead letters.`,
  heliograph_queues_paused: 'Queues paused by an operator, or by a restore of the database.',
  heliograph_queue_oldest_ready_seconds: 'Age of the oldest ready job. Add workers if it stays high.',
  heliograph_broadcasts: 'Broadcasts that are sending, paused manually, or paused automatically.',
  heliograph_team_bounce_percent: 'The ten highest hard bounce rates of teams over 24 hours, without names.',
  heliograph_team_complaint_percent:
    'The ten highest spam complaint rates of teams over 24 hours, without names.',
  heliograph_teams_bulk_paused: 'Teams whose broadcasts and batches are paused for bounces or complaints.',
  heliograph_return_path:
    'One value for each check of RETURN_PATH_DOMAIN (set, mx, spf): 1 if passed. Bounces need all three.',
  heliograph_report_age_seconds: 'Age of the last delivery report for email.',
  heliograph_misconfigured_senders:
    'Senders whose configuration made three emails to different domains bounce within an hour.',
  heliograph_reports: 'Delivery reports that are pending, or parked for manual action.',
  heliograph_reports_oldest_seconds: 'Age of the oldest delivery report, by state.',
} as const

type Labelled = Pick<CounterRow, 'labels' | 'values'>
type Sample = readonly [labels: string, value: number]
type GaugeSamples = Record<keyof typeof GAUGES, readonly Sample[]>

/** Creates a sample with its labels. */
const sample = (labels: Readonly<Record<string, string | number>>, value: number): Sample => [
  Object.entries(labels)
    .map(([name, label]) => `${name}="${label}"`)
    .join(','),
  value,
]

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)
const largestOf = (numbers: readonly number[]): number => Math.max(0, ...numbers)

/** Returns the running versions, each once. A rolling deployment has two for a while. */
const buildSamples = (processes: readonly ProcessRow[]): Sample[] => {
  const builds = processes.map(({ kind, gauges: { version, node } }) =>
    sample({ process: kind, version, node }, 1),
  )
  return [...new Map(builds.map((build) => [build[0], build])).values()]
}

function processSamples(processes: readonly ProcessRow[]) {
  const kinds = ['web', 'worker'].map((kind) => ({
    process: kind,
    gauges: processes.filter((process) => process.kind === kind).map((process) => process.gauges),
  }))
  const workers = kinds.find(({ process }) => process === 'worker')?.gauges ?? []
  const busy = sumOf(workers.map((each) => each.busy)) / Math.max(1, workers.length)
  const largest = (name: 'event_loop_lag_seconds' | 'resident_memory_bytes') =>
    kinds.map(({ process, gauges }) => sample({ process }, largestOf(gauges.map((each) => each[name]))))
  return {
    heliograph_processes: kinds.map(({ process, gauges }) => sample({ process }, gauges.length)),
    heliograph_build_info: buildSamples(processes),
    heliograph_event_loop_lag_seconds: largest('event_loop_lag_seconds'),
    heliograph_resident_memory_bytes: largest('resident_memory_bytes'),
    heliograph_database_connections: kinds.flatMap(({ process, gauges }) =>
      (['busy', 'waiting', 'limit'] as const).map((state) =>
        sample({ process, state }, sumOf(gauges.map((each) => each[`connections_${state}`]))),
      ),
    ),
    heliograph_worker_busy_ratio: [sample({}, busy)],
  }
}

const kindOfSender = (key: string): string => key.split(':')[0] ?? ''

/** Groups senders by kind, the prefix of their keys, and by name. The rest of a key can contain a host name. */
function senderSamples(senders: readonly SenderStats[], processes: readonly ProcessRow[]): Sample[] {
  // A sender that never failed has no row.
  const used = processes.flatMap((process) => Object.values(process.senders))
  // Without the filter, the row of an old relay that no process uses would stay paused forever.
  const current = senders.filter(({ key, name }) => name !== null || used.length === 0 || used.includes(key))
  const kinds = [...new Set([...used, ...senders.map(({ key }) => key)].map(kindOfSender))].sort()
  return kinds.flatMap((kind) => {
    const own = current.filter(({ key }) => kindOfSender(key) === kind)
    const named = own.flatMap(({ name }) => name ?? [])
    return [null, ...named].flatMap((name) => {
      const those = own.filter((sender) => sender.name === name)
      if (name === null && those.length === 0 && named.length > 0) return []
      const labels = { provider: kind, ...(name === null ? {} : { name }) }
      return (['paused', 'slowed'] as const).map((state) =>
        sample({ ...labels, state }, sumOf(those.map((sender) => sender[state]))),
      )
    })
  })
}

const jobSamples = (queues: readonly QueueStatus[]): Sample[] =>
  queues.flatMap((status) => JOB_STATES.map((state) => sample({ queue: status.queue, state }, status[state])))

type Reads = Pick<Replica, 'read'>
type QueueLook = () => Promise<QueueStatus[]>

/** How many teams are ranked. */
const RANKS = 10

/** The highest rates of all teams. */
const ranked = (teams: readonly SendingOfTeam[], of: 'hard_bounced' | 'complained'): Sample[] =>
  teams
    .map(({ sent, [of]: count }) => percentOf(count, sent))
    .sort((one, other) => other - one)
    .slice(0, RANKS)
    .map((percent, at) => sample({ rank: at + 1 }, percent))

type Looks = { status: QueueLook; replica: Reads; least: number; returnPath: ReturnPathCheck | null }

/** Returns the parts that bounces need to come back, and the age of the last report. */
function returnPathSamples(found: ReturnPathCheck | null) {
  if (found === null) return { heliograph_return_path: [], heliograph_report_age_seconds: [] }
  const { domain, mx, spf, last_report_at: last } = found
  return {
    heliograph_return_path: Object.entries({ set: domain, mx, spf }).map(([check, is]) =>
      sample({ check }, is === null ? 0 : 1),
    ),
    heliograph_report_age_seconds:
      last === null ? [] : [sample({}, Math.max(0, (Date.now() - Date.parse(last)) / 1_000))],
  }
}

async function gaugeSamples(
  database: Database,
  { status, replica, least, returnPath }: Looks,
): Promise<GaugeSamples> {
  const teams = await sendingOfLastDay(database, least)
  const processes = await liveProcesses(database, SILENT_AFTER_S)
  const senders = await senderStates(database)
  const numbers = await numberQualities(database)
  const queues = await status()
  const paused = [...(await pausedQueues(database)).values()]
  // These queries get slower with a backlog. A counter that decreased or a process that seemed dead would
  // raise alerts, so only these are read from the replica.
  const broadcasts = await broadcastStates(database)
  const [queued, reports, scheduled] = await replica.read(database, async (near) => [
    await queuedByAge(near, AGES, MAX_COUNTED),
    await openReports(near),
    await scheduledMessages(near),
  ])
  return {
    ...processSamples(processes),
    heliograph_senders: senderSamples(senders, processes),
    heliograph_whatsapp_numbers: numbers.map(({ name, quality }) => sample({ name, quality }, 1)),
    heliograph_queued_messages: queued.map(({ channel, age, messages }) =>
      sample({ channel, older_than_seconds: age }, messages),
    ),
    heliograph_scheduled_messages: scheduled.map(({ channel, messages }) => sample({ channel }, messages)),
    heliograph_queue_jobs: jobSamples(queues),
    heliograph_queues_paused: [
      sample({ reason: 'operator' }, paused.filter(({ reason }) => reason !== RESTORED).length),
      sample({ reason: 'restored' }, paused.filter(({ reason }) => reason === RESTORED).length),
    ],
    heliograph_queue_oldest_ready_seconds: queues.map(({ queue, oldest_ready_seconds: age }) =>
      sample({ queue }, age ?? 0),
    ),
    heliograph_broadcasts: broadcasts.map(({ state, broadcasts: count }) => sample({ state }, count)),
    heliograph_team_bounce_percent: ranked(teams, 'hard_bounced'),
    heliograph_team_complaint_percent: ranked(teams, 'complained'),
    heliograph_teams_bulk_paused: [sample({}, await countBulkPaused(database))],
    ...returnPathSamples(returnPath),
    heliograph_misconfigured_senders: [sample({}, (await misconfiguredSenders(database)).length)],
    heliograph_reports: reports.map(({ state, reports: count }) => sample({ state }, count)),
    heliograph_reports_oldest_seconds: reports.map((row) => sample({ state: row.state }, row.oldest_seconds)),
  }
}

const line = (name: string, labels: string, value: number): string =>
  `${name}${labels === '' ? '' : `{${labels}}`} ${value}`

const head = (name: string, help: string, type: string): string[] => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} ${type}`,
]

/** The lines of one histogram: cumulative buckets, sum and count. */
function histogramLines(name: string, buckets: readonly number[], { labels, values }: Labelled): string[] {
  const count = values[buckets.length] ?? 0
  const bucketLines = buckets.map((bound, at) =>
    line(`${name}_bucket`, `${labels},le="${bound}"`, values[at] ?? 0),
  )
  return [
    ...bucketLines,
    line(`${name}_bucket`, `${labels},le="+Inf"`, count),
    line(`${name}_sum`, labels, values[buckets.length + 1] ?? 0),
    line(`${name}_count`, labels, count),
  ]
}

function counterLines(rows: readonly CounterRow[]): string[] {
  const byFigure: Map<string, Labelled[]> = Map.groupBy(rows, ({ figure }) => figure)
  return keysOf(METRICS).flatMap((name) => {
    const figure = METRICS[name]
    const own = byFigure.get(name) ?? []
    if (!('buckets' in figure)) {
      const lines = own.map(({ labels, values }) => line(name, labels, values[0] ?? 0))
      return [...head(name, figure.help, 'counter'), ...lines]
    }
    return [
      ...head(name, figure.help, 'histogram'),
      ...own.flatMap((row) => histogramLines(name, figure.buckets, row)),
    ]
  })
}

/**
 * @param least the minimum number of emails of a ranked team.
 * @param returnPath whether bounces can come back, or null if unknown.
 */
export async function exposition(
  database: Database,
  status: QueueLook = () => queueStatus(database),
  replica: Reads = NO_REPLICA,
  { least = 1, returnPath = null }: { least?: number; returnPath?: ReturnPathCheck | null } = {},
): Promise<string> {
  const counters = counterLines(await fleetCounters(database))
  const samples = await gaugeSamples(database, { status, replica, least, returnPath })
  const gauges = keysOf(GAUGES).flatMap((name) => [
    ...head(name, GAUGES[name], 'gauge'),
    ...samples[name].map(([labels, value]) => line(name, labels, value)),
  ])
  return `${[...counters, ...gauges].join('\n')}\n`
}
