/**
 * The scaling signal: how late the queues are with what more workers could do now, and how many workers that asks for.
 * Promises: at most one look at the database in five seconds, however many ask. Jobs that are put off, that wait for a
 * paused sender, or that a sender's own rate holds back do not count, because another worker would not help.
 */
import type { Database } from '../../postgres/pool.ts'
import { type QueueStatus, queueStatus } from '../../queue/jobs.sql.ts'
import { pausedQueues } from '../../queue/pauses.sql.ts'
import { liveProcesses, type ProcessRow, type SenderFigures, senderStates } from './fleet.sql.ts'
import { SILENT_AFTER_S } from './fleet.ts'

type QueueScale = { latency_seconds: number; ready: number; active: number }
export type Scale = {
  workers: QueueScale & { processes: number; recommended: number }
  queues: Record<string, QueueScale>
}

/** How long an answer is good, in milliseconds. */
const SCALE_CACHED_MS = 5_000
/** A queue may be so late before more workers are asked for, in seconds. */
const TARGET_DELAY = 5
/** Fewer workers than this fullness asks for are never recommended. */
const TARGET_FULLNESS = 0.75

/** Whether every sender of a queue is paused or out of tokens. Without a worker no sender is known. */
function isHeld(queue: string, workers: readonly ProcessRow[], states: ReadonlyMap<string, SenderFigures>) {
  const keys = workers.flatMap(({ senders }) => senders[queue] ?? [])
  return (
    keys.length > 0 && keys.every((key) => (states.get(key)?.paused ?? 0) + (states.get(key)?.full ?? 0) > 0)
  )
}

/** Whether some worker takes a queue, or would if there were one. More of the same would not help where none does. */
const isTaken = (queue: string, workers: readonly ProcessRow[]): boolean =>
  workers.length === 0 || workers.some(({ queues }) => queues.includes(queue))

/** At most double, so that one late moment does not start a hundred; fewer only once nothing is late. */
function recommended(latency: number, workers: readonly ProcessRow[]): number {
  const now = workers.length
  const used = workers.reduce((sum, { gauges }) => sum + gauges.busy, 0)
  const needed = Math.max(1, Math.ceil(used / TARGET_FULLNESS))
  if (now === 0 || latency <= TARGET_DELAY) return Math.min(needed, Math.max(1, now))
  return Math.min(2 * now, Math.max(now + 1, Math.ceil((now * latency) / TARGET_DELAY)))
}

/** The signal of these figures. Pure. */
export function scaleOf(
  queues: readonly QueueStatus[],
  processes: readonly ProcessRow[],
  senders: readonly SenderFigures[],
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

/** Makes the function that answers with the signal. */
export function createScale(database: Database): () => Promise<Scale> {
  let known: { at: number; scale: Promise<Scale> } | null = null
  const look = async (): Promise<Scale> => {
    const [queues, processes, senders, paused] = await Promise.all([
      queueStatus(database),
      liveProcesses(database, SILENT_AFTER_S),
      senderStates(database),
      pausedQueues(database),
    ])
    return scaleOf(queues, processes, senders, paused)
  }
  return () => {
    const now = performance.now()
    if (known && now - known.at < SCALE_CACHED_MS) return known.scale
    const scale = look()
    known = { at: now, scale }
    // A failed answer is not kept.
    scale.catch(() => {
      if (known?.scale === scale) known = null
    })
    return scale
  }
}
