/** Reports results of sends to a sender, through the same functions as the delivery engine. */

import { applySignals, type Change, type SenderSignal } from '../../db/delivery/senders/circuit-breaker.ts'
import { type Reservation, reserveSends, type Sender } from '../../db/delivery/senders/rate-limit.ts'
import type { Database, Tx } from '../../db/postgres/pool.ts'

const report = (tx: Tx, sender: Sender, signal: SenderSignal): Promise<Change[]> =>
  applySignals(tx, [{ sender, signals: [signal] }])

/** Reports that the provider accepts nothing for some seconds. */
export const pauseSender = (tx: Tx, sender: Sender, wait_seconds: number, words: string): Promise<Change[]> =>
  report(tx, sender, { kind: 'slow', words, wait_seconds, began_at: new Date(0) })

/** Reports that a send that started then was too fast. */
export const slowSender = (tx: Tx, sender: Sender, began_at: Date, words: string): Promise<Change[]> =>
  report(tx, sender, { kind: 'slow', words, began_at })

/**
 * Reports that nothing could be sent. @returns the seconds of the pause, or null if the outage was already
 * known.
 */
export async function noteTrouble(tx: Tx, sender: Sender, trouble: Extract<SenderSignal, { words: string }>) {
  const [change] = await report(tx, sender, trouble)
  return change?.seconds ?? null
}

/** Reports that a send that started then was accepted. @returns true if that ended an outage. */
export const noteRecovery = async (tx: Tx, sender: Sender, began_at: Date): Promise<boolean> =>
  (await report(tx, sender, { kind: 'accepted', began_at })).length > 0

/** Reserves sends through one sender, as workers do. */
export async function reserveOne(
  database: Database,
  sender: Sender,
  costs: readonly number[],
  horizon: number,
): Promise<Reservation> {
  const [reservation] = await reserveSends(database, [{ sender, costs }], horizon)
  if (!reservation) throw new Error('there must be a reservation')
  return reservation
}
