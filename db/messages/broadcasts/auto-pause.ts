/**
 * When a broadcast is paused by itself: too many of its emails bounce, or too many people complain.
 * Promises: decided by its figures, never by counting emails. One that a person lets go on is judged by
 * what came after it was braked.
 */
import type { Tx } from '../../postgres/pool.ts'
import { saveBraked, type Tally, talliesOf } from './auto-pause.sql.ts'
import type { BroadcastKey } from './broadcasts.sql.ts'

/** Above these percentages of what has left. */
export type Brakes = { bounce_percent: number; complaint_percent: number }

/** How many emails must have left before either is judged, and how many people must have complained. */
const BOUNCES_AFTER = 200
const COMPLAINTS_AFTER = 1_000
const FEWEST_COMPLAINTS = 3

/** What brakes a broadcast that has come to this since it was braked last; null: nothing. Pure. */
export function brakeFor(
  { left, bounced, complained }: Tally,
  { bounce_percent, complaint_percent }: Brakes,
): 'bounces' | 'complaints' | null {
  if (left >= BOUNCES_AFTER && bounced * 100 > left * bounce_percent) return 'bounces'
  const isMany = complained >= FEWEST_COMPLAINTS && complained * 100 > left * complaint_percent
  return left >= COMPLAINTS_AFTER && isMany ? 'complaints' : null
}

/** Whether a broadcast that is being sent has to be braked now: then it is judged from here on. */
export async function brakeOn(
  tx: Tx,
  key: BroadcastKey,
  brakes: Brakes,
): Promise<'bounces' | 'complaints' | null> {
  const { now, braked } = await talliesOf(tx, key)
  const since = {
    left: now.left - braked.left,
    bounced: now.bounced - braked.bounced,
    complained: now.complained - braked.complained,
  }
  const brake = brakeFor(since, brakes)
  if (brake !== null) {
    const [count, limit] =
      brake === 'bounces'
        ? [since.bounced, brakes.bounce_percent]
        : [since.complained, brakes.complaint_percent]
    await saveBraked(tx, key, now, { left: since.left, count, limit })
  }
  return brake
}
