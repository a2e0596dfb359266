/**
 * Pauses senders if a report shows that the provider has stopped a number or account. A pause starts at the time of
 * the event, so that an old or repeated report has no effect. A longer pause stays. Runs last in the caller's
 * transaction, because sends wait for these rows.
 */
import type { Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { APPLIED, type EventResult, ignored } from '../reports/event-result.ts'
import { insertSenderEvents } from './events.sql.ts'
import { extendPauses } from './senders.sql.ts'

/** Pauses the sender for `seconds` from `occurred_at`. */
type ReportedPause = { sender: string; seconds: number; reason: string; occurred_at: Date }

const pauseStart = ({ occurred_at }: ReportedPause, now: Date): Date =>
  occurred_at < now ? occurred_at : now
const pauseEnd = (pause: ReportedPause, now: Date): Date =>
  new Date(pauseStart(pause, now).getTime() + pause.seconds * 1_000)

/** Applies pauses in one statement, and writes the timelines in another. @returns a result for each. */
export async function applyReportedPauses(tx: Tx, pauses: readonly ReportedPause[]): Promise<EventResult[]> {
  const now = await serviceTime(tx)
  const longest = new Map<string, { key: string; until: Date; reason: string; begin: Date }>()
  for (const pause of pauses) {
    const until = pauseEnd(pause, now)
    const known = longest.get(pause.sender)
    if (until <= now || (known && known.until >= until)) continue
    longest.set(pause.sender, {
      key: pause.sender,
      until,
      reason: pause.reason,
      begin: pauseStart(pause, now),
    })
  }
  const found = longest.size > 0 ? await extendPauses(tx, [...longest.values()], now) : []
  const events = found.flatMap(({ key, is_news }) => {
    const pause = longest.get(key)
    if (!is_news || !pause) return []
    return [{ sender: key, kind: 'paused' as const, occurred_at: pause.begin, detail: pause.reason }]
  })
  if (events.length > 0) await insertSenderEvents(tx, events)
  const there = new Set(found.map(({ key }) => key))
  return pauses.map((pause) => {
    if (pauseEnd(pause, now) <= now) return ignored('the pause that it reports has ended')
    return there.has(pause.sender) ? APPLIED : ignored('nothing is sent through the sender that it names')
  })
}
