/**
 * Gives messages that are still to be delivered a job again: for dead letters and for the sweep.
 * Promises: a row that the provider has taken is left alone; a row never has two jobs (its job's id is its own);
 * marks, jobs and events are stored together. Design §7 (Sweep).
 */
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import { insertWhatsappEvents } from './events.sql.ts'
import type { MessageRef } from './messages.sql.ts'
import { markMessagesRequeued } from './requeue.sql.ts'

/** Marks those of the messages that the provider has not taken, and tells their timelines. @returns these. */
export async function noteMessagesRequeued(
  { tx, now }: { tx: Tx; now: Date },
  refs: readonly MessageRef[],
): Promise<readonly MessageRef[]> {
  if (refs.length === 0) return []
  const requeued = await markMessagesRequeued(tx, refs, now)
  const event = {
    event_key: `requeued:${now.toISOString()}`,
    kind: 'requeued' as const,
    occurred_at: now,
    detail: '',
  }
  if (requeued.length > 0)
    await insertWhatsappEvents(
      tx,
      requeued.map((ref) => ({ ...ref, ...event })),
    )
  return requeued
}

/** Requeues those of the messages that the provider has not taken. @returns these. */
export async function requeueMessages(
  { tx, queue, now }: { tx: Tx; queue: Pick<Producer, 'reenqueue'>; now: Date },
  refs: readonly MessageRef[],
): Promise<readonly MessageRef[]> {
  const requeued = await noteMessagesRequeued({ tx, now }, refs)
  await queue.reenqueue(tx, 'deliver-whatsapp', requeued)
  return requeued
}
