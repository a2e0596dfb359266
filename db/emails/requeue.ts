/**
 * Gives emails that are still to be delivered a job again: for the operator, for dead letters, for the sweep.
 * Promises: a row that the provider has taken is left alone; a row never has two jobs (its job's id is its own);
 * marks, jobs and events are stored together. Design §7 (Sweep); decisions: requeue.
 */
import type { Tx } from '../pool.ts'
import type { Producer } from '../queue.ts'
import { type EmailRef, insertEvents, markRequeued } from './table.ts'

/** Requeues those of the emails that the provider has not taken. @returns these. */
export async function requeueEmails(
  tx: Tx,
  queue: Pick<Producer, 'reenqueue'>,
  refs: readonly EmailRef[],
  now: Date,
): Promise<readonly EmailRef[]> {
  if (refs.length === 0) return []
  const requeued = await markRequeued(tx, refs, now)
  if (requeued.length === 0) return []
  await queue.reenqueue(tx, 'deliver-email', requeued)
  await insertEvents(
    tx,
    requeued.map((ref) => ({
      ...ref,
      event_key: `requeued:${now.toISOString()}`,
      kind: 'requeued' as const,
      recipient: null,
      occurred_at: now,
      detail: '',
    })),
  )
  return requeued
}
