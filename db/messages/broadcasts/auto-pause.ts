/**
 * Decides when a broadcast is paused for its bounces or complaints, from its stats. After a manual resume, only later
 * emails count.
 */
import type { Tx } from '../../postgres/pool.ts'
import { readTallies, saveAutoPaused, type Tally } from './auto-pause.sql.ts'
import type { BroadcastKey } from './broadcasts.sql.ts'

/** A broadcast is paused above these percentages of the emails that have left. */
export type Brakes = { bounce_percent: number; complaint_percent: number }

/** How many emails must have left before each rate is checked, and its minimum count. */
export const LEAST = { bounced: { left: 200, count: 1 }, complained: { left: 1_000, count: 3 } } as const

/** Returns the reason to pause a broadcast with these counts since its last auto-pause, or null. Pure. */
export function autoPauseReason(
  { left, bounced, complained }: Tally,
  { bounce_percent, complaint_percent }: Brakes,
): 'bounces' | 'complaints' | null {
  if (left >= LEAST.bounced.left && bounced * 100 > left * bounce_percent) return 'bounces'
  const isMany = complained >= LEAST.complained.count && complained * 100 > left * complaint_percent
  return left >= LEAST.complained.left && isMany ? 'complaints' : null
}

/** Returns why a broadcast must be paused now, or null. After a reason, later checks start from here. */
export async function checkAutoPause(
  tx: Tx,
  key: BroadcastKey,
  brakes: Brakes,
): Promise<'bounces' | 'complaints' | null> {
  const { now, braked } = await readTallies(tx, key)
  const since = {
    left: now.left - braked.left,
    bounced: now.bounced - braked.bounced,
    complained: now.complained - braked.complained,
  }
  const brake = autoPauseReason(since, brakes)
  if (brake !== null) {
    const [count, limit] =
      brake === 'bounces'
        ? [since.bounced, brakes.bounce_percent]
        : [since.complained, brakes.complaint_percent]
    await saveAutoPaused(tx, key, now, { left: since.left, count, limit })
  }
  return brake
}
