/**
 * Gives messages that are still to be delivered a job again: for dead letters and for the sweep.
 * Promises: a row that the provider has taken is left alone; a row never has two jobs (its job's id is its own);
 * marks, jobs and events are stored together. Design §7 (Sweep).
 */
import type { Tx } from '../pool.ts'
import type { Producer } from '../queue.ts'
import { insertEvents, type MessageRef, markRequeued } from './table.ts'

/** Requeues those of the messages that the provider has not taken. @returns these. */
export async function requeueMessages(
  tx: Tx,
  queue: Pick<Producer, 'reenqueue'>,
  refs: readonly MessageRef[],
  now: Date,
): Promise<readonly MessageRef[]> {
  if (refs.length === 0) return []
  const requeued = await markRequeued(tx, refs, now)
  if (requeued.length === 0) return []
  await queue.reenqueue(tx, 'deliver-whatsapp', requeued)
  const event = {
    event_key: `requeued:${now.toISOString()}`,
    kind: 'requeued' as const,
    occurred_at: now,
    detail: '',
  }
  await insertEvents(
    tx,
    requeued.map((ref) => ({ ...ref, ...event })),
  )
  return requeued
}
