/** Describes the rate of a task and its remaining time. Pure. */
import { plural } from '../../../db/plural.ts'
import { duration } from './cell.ts'

const MINUTE = 60_000

type Pace = { done: number; left: number; since: string | null }

/** Returns the rate per minute, or null if it is too early to tell or nothing is left. @param least as below. */
function rateOf({ done, left, since }: Pace, now: Date, least: number): number | null {
  const gone = since === null ? 0 : now.getTime() - Date.parse(since)
  return done === 0 || left <= 0 || gone < least ? null : done / (gone / MINUTE)
}

/** @param least as below. */
export function leftWords(pace: Pace, now: Date, least: number): string {
  const rate = rateOf(pace, now, least)
  return rate === null ? '' : `${duration((pace.left / rate) * 60, Math.round)} left`
}

/**
 * Returns a text such as `about 300 emails a minute, done in about 4 minutes`, or '' if it is too early to
 * tell.
 * @param least the minimum time since the start, in milliseconds.
 */
export function paceWords(
  pace: Pace,
  now: Date,
  { noun, least = MINUTE }: { noun: string; least?: number },
): string {
  const rate = rateOf(pace, now, least)
  if (rate === null) return ''
  const shown = Math.max(1, Math.round(Number(rate.toPrecision(2))))
  return `about ${plural(shown, noun)} a minute, done in about ${duration((pace.left / rate) * 60, Math.round)}`
}
