/**
 * Walks through all that waits, part by part, and gives what has lost its job a new one.
 * Promises: each part is a transaction of its own, whose cost does not depend on how much waits. A walk that takes
 * longer than a round is gone on with in the next one, by whichever worker.
 */
import type { Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import type { At, Database } from '../postgres/pool.ts'
import type { Producer } from '../queue/producer.ts'
import { requeueMessages } from './requeue.ts'
import { lockCursor, lostMessages, saveCursor } from './sweep.sql.ts'

/** Waiting rows of one part. */
const SWEEP_BATCH = 2_000
/** For how long to begin further parts in one round, in milliseconds: half a million rows, more or less. */
const SWEEP_ROUND_MS = 5_000

type Requeueing = At & { queue: Pick<Producer, 'reenqueue'> }
type Limits = { before: Date; most: number; part?: number; patience?: number }

/** Walks through the next part. @returns what was requeued, and whether the walk has come to its end. */
async function scanBatch(
  at: Requeueing,
  channel: Deliverable,
  { before, most, part = SWEEP_BATCH }: Limits,
): Promise<{ requeued: readonly DeliveryRef[]; over: boolean }> {
  const after = await lockCursor(at.tx, channel)
  if (after === null) return { requeued: [], over: true }
  const { lost, next } = await lostMessages(at.tx, channel, { after, size: part }, { before, limit: most })
  const requeued = await requeueMessages(at, channel, lost, { by: 'sweep' })
  // A part with more than may be requeued is looked at again.
  const isFull = lost.length === most && requeued.length > 0
  if (!isFull) await saveCursor(at.tx, channel, next)
  return { requeued, over: isFull || next === null }
}

/**
 * One round of the walk: until its end, or for as long as the patience lasts.
 * @param most how many to requeue at most. @returns how many were.
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
