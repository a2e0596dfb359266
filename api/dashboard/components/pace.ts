/** Describes the rate of a task and its remaining time. Pure. */
import { plural } from '../../../db/plural.ts'
import { duration } from './cell.ts'

const MINUTE = 60_000

/** How long a task can be without progress before its page shows that, in milliseconds. */
const STALLED_AFTER_MS = 2 * MINUTE

/** `progressed_at` is null if it isn't known. */
type Pace = { done: number; left: number; since: string | null; progressed_at: string | null }

/** Returns the rate per minute, or null if it is too early to tell or nothing is left. @param least as below. */
function rateOf({ done, left, since, progressed_at }: Pace, now: Date, least: number): number | null {
  const start = since === null ? now.getTime() : Date.parse(since)
  if (done === 0 || left <= 0 || now.getTime() - start < least) return null
  const end = progressed_at === null ? start : Date.parse(progressed_at)
  return done / (((end > start ? end : now.getTime()) - start) / MINUTE)
}

/** Returns a text such as `no progress for 4 minutes`, or '' while the task progresses. */
function stalledWords({ left, progressed_at }: Pace, now: Date): string {
  const stalled = progressed_at === null || left <= 0 ? 0 : now.getTime() - Date.parse(progressed_at)
  return stalled < STALLED_AFTER_MS ? '' : `no progress for ${duration(stalled / 1_000, Math.floor)}`
}

/** @param least as below. */
export function leftWords(pace: Pace, now: Date, least: number): string {
  const stalled = stalledWords(pace, now)
  if (stalled !== '') return stalled
  const rate = rateOf(pace, now, least)
  return rate === null ? '' : `${duration((pace.left / rate) * 60, Math.round)} left`
}

/**
 * Returns a text such as `about 300 emails a minute, done in about 4 minutes`, or '' if it is too early to
 * tell. A task without progress has no end.
 * @param least the minimum time since the start, in milliseconds.
 */
export function paceWords(
  pace: Pace,
  now: Date,
  { noun, least = MINUTE }: { noun: string; least?: number },
): string {
  const stalled = stalledWords(pace, now)
  if (stalled !== '') return stalled
  const rate = rateOf(pace, now, least)
  if (rate === null) return ''
  const shown = Math.max(1, Math.round(Number(rate.toPrecision(2))))
  return `about ${plural(shown, noun)} a minute, done in about ${duration((pace.left / rate) * 60, Math.round)}`
}
