/** Pauses all active broadcasts of a restored copy of the database, and resumes them in their previous states. */
import type { At, Tx } from '../../postgres/pool.ts'
import type { Producer } from '../../queue/producer.ts'
import { broadcastsPausedFor, lockUnderWay } from './broadcasts.sql.ts'
import { changeState } from './change-state.ts'
import { enqueueExpansion } from './start.ts'
import { bringEmailsForward } from './waiting.sql.ts'

export async function pauseUnderWay(tx: Tx, reason: string, now: Date): Promise<void> {
  for (const row of await lockUnderWay(tx))
    await changeState(tx, row, { from: ['scheduled', 'sending'], to: 'paused', reason }, now)
}

/** Resumes the broadcasts paused for this reason. @returns how many. */
export async function resumeRestoredBroadcasts(
  { tx, now, queue }: At & { queue: Pick<Producer, 'reenqueue'> },
  reason: string,
): Promise<number> {
  const rows = await broadcastsPausedFor(tx, reason)
  for (const row of rows) {
    // A broadcast that had not started waits for its time again.
    const to = row.audience_until === null ? 'scheduled' : 'sending'
    await changeState(tx, row, { from: ['paused'], to }, now)
    await enqueueExpansion({ tx, queue }, row)
    await bringEmailsForward(tx, row)
  }
  return rows.length
}
