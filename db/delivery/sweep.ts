/**
 * Scans all waiting messages in batches, and gives those that have lost their job a new one. Each batch is a
 * transaction with a bounded cost. A scan that doesn't end in one round continues in the next one, in any worker.
 */
import type { Deliverable } from '../channels/channel.sql.ts'
import type { At, Database } from '../postgres/pool.ts'
import type { Producer } from '../queue/producer.ts'
import { requeueMessages } from './requeue.ts'
import { lockCursor, lostMessages, saveCursor } from './sweep.sql.ts'

const SWEEP_BATCH = 25_000
/** How long to start further batches in one round, in milliseconds: one or two million rows. */
const SWEEP_ROUND_MS = 5_000

type Requeueing = At & { queue: Pick<Producer, 'reenqueue'> }
type Limits = { before: Date; most: number; part?: number; patience?: number }

/** Scans the next batch. @returns the requeued messages, and whether the scan has ended. */
async function scanBatch(at: Requeueing, channel: Deliverable, { before, most, part = SWEEP_BATCH }: Limits) {
  const after = await lockCursor(at.tx, channel)
  if (after === null) return { requeued: [], over: true }
  const { lost, next } = await lostMessages(at.tx, channel, { after, size: part }, { before, limit: most })
  const requeued = await requeueMessages(at, channel, lost, { by: 'sweep' })
  // A batch with more than can be requeued is scanned again.
  const isFull = lost.length === most && requeued.length > 0
  if (!isFull) await saveCursor(at.tx, channel, next)
  return { requeued, over: isFull || next === null }
}

/**
 * Runs one round of the scan, until its end or the time limit.
 * @param most how many to requeue at most. @returns how many were requeued.
 */
export async function requeueLost(
  { database, ...at }: Omit<Requeueing, 'tx'> & { database: Database },
  channel: Deliverable,
  { most, patience = SWEEP_ROUND_MS, ...limits }: Limits,
): Promise<number> {
  const started = performance.now()
  for (let found = 0; ; ) {
    const { requeued, over } = await database.transaction((tx) =>
      scanBatch({ ...at, tx }, channel, { ...limits, most: most - found }),
    )
    found += requeued.length
    if (over || found >= most || performance.now() - started > patience) return found
  }
}
