/**
 * Pauses senders when a report says that the provider has stopped a number or an account.
 * Promises: a pause counts from when it happened, so an old or repeated report pauses nothing anew. A longer pause
 * stays. Only our own senders are paused. Runs last in the caller's transaction, because sends wait for these
 * rows. Must not know a provider's words.
 */
import type { Tx } from '../postgres/pool.ts'
import { APPLIED, type Fate, ignored } from '../reports/fate.ts'
import { extendPauses } from './senders.sql.ts'

/** Nothing goes through a sender for so many seconds from `occurred_at`. */
export type ReportedPause = { sender: string; seconds: number; reason: string; occurred_at: Date }

const endOf = ({ seconds, occurred_at }: ReportedPause, now: Date): Date =>
  new Date(Math.min(occurred_at.getTime(), now.getTime()) + seconds * 1_000)

/** Applies pauses in one statement. @returns a fate for each. */
export async function applyReportedPauses(
  tx: Tx,
  pauses: readonly ReportedPause[],
  now: Date,
): Promise<Fate[]> {
  const longest = new Map<string, { key: string; until: Date; reason: string }>()
  for (const pause of pauses) {
    const until = endOf(pause, now)
    const known = longest.get(pause.sender)
    if (until <= now || (known && known.until >= until)) continue
    longest.set(pause.sender, { key: pause.sender, until, reason: pause.reason })
  }
  const there = longest.size > 0 ? await extendPauses(tx, [...longest.values()]) : new Set<string>()
  return pauses.map((pause) => {
    if (endOf(pause, now) <= now) return ignored('the pause that it tells of is over')
    return there.has(pause.sender) ? APPLIED : ignored('nothing is sent through the sender that it names')
  })
}
