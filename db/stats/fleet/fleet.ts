/**
 * Sends the heartbeat of a process: its state and counter increments, in one statement every few seconds. During a
 * database outage, counts wait in memory. Any web process can therefore report on all processes (exposition.ts,
 * scale.ts).
 */
import { hostname } from 'node:os'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Database } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Log } from '../../process/log.ts'
import type { Metrics } from '../../process/metrics.ts'
import { VERSION } from '../../process/version.ts'
import { deleteProcess, type Gauges, type ProcessKind, storeSignOfLife } from './fleet.sql.ts'

/** In milliseconds. */
const INTERVAL_MS = 5_000
/** A process without a heartbeat for this many seconds was killed or hangs, and no longer counts. */
export const SILENT_AFTER_S = 20
/** When silent processes are deleted, in seconds. Until then, operators can see when they were last alive. */
export const LISTED_FOR_S = 3_600

/** A worker's report about itself. A web process reports nothing. */
export type ProcessRole = {
  queues: readonly string[]
  /** The key of the sender that a queue delivers through, by queue. */
  senders?(): Readonly<Record<string, string>>
  /** Completed jobs per second since the last call, by queue. */
  completed?(): Readonly<Record<string, number>>
  /** The utilization of its provider calls since the last call, from 0 to 1. */
  busy?(): number
}

export type FleetProcess = ReturnType<typeof joinFleet>

const NOTHING: ProcessRole = { queues: [] }

/** Measures the state of a process between two calls of `look`. */
function createGauges(
  database: Database,
  limit: number,
  role: ProcessRole,
  metrics: Metrics,
  kind: ProcessKind,
) {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  let utilization = performance.eventLoopUtilization()
  let cpu = process.cpuUsage()
  return {
    look(): Gauges {
      const since = performance.eventLoopUtilization(utilization)
      utilization = performance.eventLoopUtilization()
      const used = process.cpuUsage(cpu)
      cpu = process.cpuUsage()
      metrics.count('heliograph_cpu_seconds_total', { process: kind }, (used.user + used.system) / 1e6)
      // The delay includes the timer's own 20 ms.
      const lag = delay.count === 0 ? 0 : Math.max(0, delay.percentile(99) / 1e9 - 0.02)
      delay.reset()
      const pool = database.state()
      return {
        event_loop_lag_seconds: lag,
        resident_memory_bytes: process.memoryUsage.rss(),
        connections_busy: pool.acquiredConnections,
        connections_waiting: pool.waitingClients,
        connections_limit: limit,
        version: VERSION,
        node: process.version,
        busy: Math.min(1, Math.max(role.busy?.() ?? 0, since.utilization)),
      }
    },
    end: () => void delay.disable(),
  }
}

/** Starts the heartbeats. @param limit the size of the process's connection pool. */
export function joinFleet(
  { database, metrics, log }: { database: Database; metrics: Metrics; log: Log },
  {
    kind,
    limit,
    role = NOTHING,
    interval = INTERVAL_MS,
  }: { kind: ProcessKind; limit: number; role?: ProcessRole; interval?: number },
) {
  const own = { id: idNow(), kind, host: hostname(), pid: process.pid, started_at: new Date() }
  const gauges = createGauges(database, limit, role, metrics, kind)
  const report = async (): Promise<void> => {
    const life = {
      ...own,
      queues: role.queues,
      senders: role.senders?.() ?? {},
      completed: role.completed?.() ?? {},
      gauges: gauges.look(),
    }
    const additions = metrics.take()
    try {
      await storeSignOfLife(database, life, additions)
    } catch (error) {
      metrics.putBack(additions)
      throw error
    }
  }
  // Sequential, so that no count is reported twice.
  let last: Promise<void> = Promise.resolve()
  const flush = (): Promise<void> => {
    last = last.catch(() => {}).then(report)
    return last
  }
  const quietly = (error: unknown): void =>
    log.debug({ err: error }, 'failed to store stats, so they are stored with the next ones')
  const timer = setInterval(() => flush().catch(quietly), interval).unref()
  flush().catch(quietly)
  return {
    flush,
    /** Reports the rest, and deletes the process. */
    async leave() {
      clearInterval(timer)
      await flush().catch(quietly)
      await deleteProcess(database, own.id).catch(quietly)
      gauges.end()
    },
  }
}
