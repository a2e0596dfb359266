/**
 * Broadcasts of a copy of the database: all that are under way are paused at once, and go on together, each as it was.
 * Must not know how a copy is recognised.
 */
import type { At, Tx } from '../../postgres/pool.ts'
import type { Producer } from '../../queue/producer.ts'
import { broadcastsPausedFor, lockUnderWay } from './broadcasts.sql.ts'
import { changeState } from './change-state.ts'
import { walkOn } from './start.ts'
import { bringEmailsForward } from './waiting.sql.ts'

/** Pauses every team's that are scheduled or being sent. */
export async function pauseUnderWay(tx: Tx, reason: string, now: Date): Promise<void> {
  for (const row of await lockUnderWay(tx))
    await changeState(tx, row, { from: ['scheduled', 'sending'], to: 'paused', reason }, now)
}

/** Goes on with those that were paused for this reason. @returns how many. */
export async function resumeRestoredBroadcasts(
  { tx, now, queue }: At & { queue: Pick<Producer, 'reenqueue'> },
  reason: string,
): Promise<number> {
  const rows = await broadcastsPausedFor(tx, reason)
  for (const row of rows) {
    // One that had not begun waits for its time again.
    const to = row.audience_until === null ? 'scheduled' : 'sending'
    await changeState(tx, row, { from: ['paused'], to }, now)
    await walkOn({ tx, queue }, row)
    await bringEmailsForward(tx, row)
  }
  return rows.length
}
