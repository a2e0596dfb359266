/**
 * The one place that what has just become true passes through, in the transaction that made it true.
 * Promises: each consumer gets what is new and listened to, once, in the order in which it was stored; nothing is
 * announced that was rolled back. Must not be called for what was stored before.
 */
import type { Tx } from '../../postgres/pool.ts'
import type { Happening } from './domain-event.ts'
import { CONSUMERS } from './subscribers.sql.ts'

/** Hands on what happened to teams that somebody listens to (consumers.sql.ts, hasListeners). */
export async function publish(tx: Tx, happenings: readonly Happening[]): Promise<void> {
  if (happenings.length === 0) return
  for (const { take } of CONSUMERS) await take(tx, happenings)
}
