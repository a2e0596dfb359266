/**
 * A process as one of the fleet: every few seconds a heartbeat, with its state and what it has counted.
 * Promises: one statement each time, whatever was counted; a process that ends reports the rest first; without the
 * database the figures wait in memory. So any web process can answer for all (exposition.ts, scale.ts).
 */
import { hostname } from 'node:os'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Database } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Log } from '../../process/log.ts'
import type { Metrics } from '../../process/metrics.ts'
import { VERSION } from '../../process/version.ts'
import { deleteProcess, type Gauges, type ProcessKind, storeSignOfLife } from './fleet.sql.ts'

/** How often a process reports, in milliseconds. */
const INTERVAL_MS = 5_000
/** A process that has been silent for this many seconds no longer counts: it was killed, or it hangs. */
export const SILENT_AFTER_S = 20
/** After this many seconds of silence a process is forgotten; until then an operator sees when it was seen last. */
export const FORGOTTEN_AFTER_S = 3_600

/** What a worker reports of itself; a web process has nothing to report. */
export type ProcessRole = {
  queues: readonly string[]
  /** The key of the sender that a queue delivers through, by queue. */
  senders?(): Readonly<Record<string, string>>
  /** How many jobs of each queue it has completed per second since the last time. */
  completed?(): Readonly<Record<string, number>>
  /** How much of its provider calls was in use since the last time, from 0 to 1. */
  busy?(): number
}

export type FleetProcess = ReturnType<typeof joinFleet>

const NOTHING: ProcessRole = { queues: [] }

/** Measures how a process fares between two looks. */
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
      // The delay is measured against a timer's own 20 ms.
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

/** Joins the fleet. @param limit how many connections the process's pool may have. */
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
  // One after the other, so that no count is reported twice.
  let last: Promise<void> = Promise.resolve()
  const flush = (): Promise<void> => {
    last = last.catch(() => {}).then(report)
    return last
  }
  const quietly = (error: unknown): void => log.debug({ err: error }, 'stats wait for the database')
  const timer = setInterval(() => flush().catch(quietly), interval).unref()
  flush().catch(quietly)
  return {
    /** Reports now. */
    flush,
    /** Reports the rest, and that the process has ended. */
    async leave() {
      clearInterval(timer)
      await flush().catch(quietly)
      await deleteProcess(database, own.id).catch(quietly)
      gauges.end()
    },
  }
}
