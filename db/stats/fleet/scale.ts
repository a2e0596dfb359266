/**
 * The signal for autoscaling: how late the queues are with work that more workers could do, and the recommended
 * number of workers. Deferred jobs and jobs that wait for a paused or rate-limited sender don't count, because
 * another worker wouldn't help.
 */
import type { Database } from '../../postgres/pool.ts'
import { type QueueStatus, queueStatus } from '../../queue/jobs.sql.ts'
import { pausedQueues } from '../../queue/pauses.sql.ts'
import { liveProcesses, type ProcessRow, type SenderStats, senderStates } from './fleet.sql.ts'
import { SILENT_AFTER_S } from './fleet.ts'

type QueueScale = { latency_seconds: number; ready: number; active: number }
export type Scale = {
  workers: QueueScale & { processes: number; recommended: number }
  queues: Record<string, QueueScale>
}

/** How long a result is cached, in milliseconds. */
const SCALE_CACHED_MS = 5_000
/** The latency from which more workers are recommended, in seconds. */
const TARGET_DELAY = 5
/** The highest utilization of the recommended number of workers. */
const TARGET_FULLNESS = 0.75

/** True if every sender of a queue is paused or at its rate limit. Without workers, no sender is known. */
function isHeld(queue: string, workers: readonly ProcessRow[], states: ReadonlyMap<string, SenderStats>) {
  const keys = workers.flatMap(({ senders }) => senders[queue] ?? [])
  return (
    keys.length > 0 && keys.every((key) => (states.get(key)?.paused ?? 0) + (states.get(key)?.full ?? 0) > 0)
  )
}

/** True if a worker claims from this queue, or if no worker runs. Otherwise, more workers wouldn't help. */
export const isTaken = (queue: string, workers: readonly ProcessRow[]): boolean =>
  workers.length === 0 || workers.some(({ queues }) => queues.includes(queue))

/**
 * At most doubles the workers, so that a short delay doesn't start a hundred. Scales down only while nothing is late.
 */
function recommended(latency: number, workers: readonly ProcessRow[]): number {
  const now = workers.length
  const used = workers.reduce((sum, { gauges }) => sum + gauges.busy, 0)
  const needed = Math.max(1, Math.ceil(used / TARGET_FULLNESS))
  if (now === 0 || latency <= TARGET_DELAY) return Math.min(needed, Math.max(1, now))
  return Math.min(2 * now, Math.max(now + 1, Math.ceil((now * latency) / TARGET_DELAY)))
}

/** Computes the signal. Pure. */
export function computeScale(
  queues: readonly QueueStatus[],
  processes: readonly ProcessRow[],
  senders: readonly SenderStats[],
  paused: Pick<ReadonlySet<string>, 'has'> = new Set(),
): Scale {
  const workers = processes.filter(({ kind }) => kind === 'worker')
  const states = new Map(senders.map((sender) => [sender.key, sender]))
  const each = queues.map(({ queue, ready, active, oldest_ready_seconds }): [string, QueueScale] => {
    const held = paused.has(queue) || isHeld(queue, workers, states)
    return [
      queue,
      { latency_seconds: held ? 0 : (oldest_ready_seconds ?? 0), ready: held ? 0 : ready, active },
    ]
  })
  const all = each.filter(([queue]) => isTaken(queue, workers)).map(([, scale]) => scale)
  const latency = Math.max(0, ...all.map((scale) => scale.latency_seconds))
  return {
    workers: {
      latency_seconds: latency,
      ready: all.reduce((sum, scale) => sum + scale.ready, 0),
      active: all.reduce((sum, scale) => sum + scale.active, 0),
      processes: workers.length,
      recommended: recommended(latency, workers),
    },
    queues: Object.fromEntries(each),
  }
}

/** Creates a function that returns the signal, cached. */
export function createScale(database: Database): () => Promise<Scale> {
  let known: { at: number; scale: Promise<Scale> } | null = null
  const look = async (): Promise<Scale> => {
    const [queues, processes, senders, paused] = await Promise.all([
      queueStatus(database),
      liveProcesses(database, SILENT_AFTER_S),
      senderStates(database),
      pausedQueues(database),
    ])
    return computeScale(queues, processes, senders, paused)
  }
  return () => {
    const now = performance.now()
    if (known && now - known.at < SCALE_CACHED_MS) return known.scale
    const scale = look()
    known = { at: now, scale }
    // Errors aren't cached.
    scale.catch(() => {
      if (known?.scale === scale) known = null
    })
    return scale
  }
}
