/**
 * Validates the times in requests: when a message is due and when it expires. Times need a time zone and a real date,
 * and are stored to the millisecond. A time up to five minutes in the past means now.
 */
import { RequestError } from '../errors.ts'

const A_TIME = /^(\d{4}-\d{2}-\d{2})T(?!24)\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i

/** True for an RFC 3339 time with seconds. Rejects 24:00, and years that don't have four digits in UTC. */
export function isMoment(text: string): boolean {
  const [, day] = A_TIME.exec(text) ?? []
  const year = new Date(text).getUTCFullYear()
  if (day === undefined || !(year >= 1 && year <= 9_999)) return false
  // JavaScript reads 31 February as a day in March.
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

/** Converts a time to UTC, because PostgreSQL doesn't accept zones beyond ±15:59. */
export const toUtc = (time: string | null): string | null =>
  time === null ? null : new Date(time).toISOString()

const MAX_DAYS_AHEAD = 90
const EXAMPLE_DAYS_AHEAD = 14

/** A future time for examples. It only changes once a day. */
export function exampleMoment(now: Date, daysAhead = EXAMPLE_DAYS_AHEAD): string {
  const day = new Date(now.getTime() + daysAhead * 86_400_000).toISOString().slice(0, 10)
  return `${day}T09:00:00Z`
}
const MAX_MINUTES_LATE = 5

/** Returns the error of a scheduled time, without the name of its field, or null. */
export function momentFault(time: string, now: Date): string | null {
  const ahead = Date.parse(time) - now.getTime()
  if (ahead > MAX_DAYS_AHEAD * 86_400_000) return `must be at most ${MAX_DAYS_AHEAD} days ahead`
  if (ahead >= -MAX_MINUTES_LATE * 60_000) return null
  return `must not be more than ${MAX_MINUTES_LATE} minutes in the past`
}

/** The schedule in a send. `expires_in` counts from `scheduled_at`, or from acceptance without one. */
export type When = { scheduled_at: string | null; expires_in: number | null }

/** In seconds. */
export const EXPIRES_IN = { min: 60, max: 86_400 } as const

/**
 * Returns an error if a send's `scheduled_at` is out of range, or null. @param path the path of the item, as a
 * prefix.
 */
export function timeError({ when, path }: { when?: When; path: string }, now: Date): RequestError | null {
  const problem = when?.scheduled_at ? momentFault(when.scheduled_at, now) : null
  return problem === null ? null : new RequestError('bad_request', { field: `${path}scheduled_at`, problem })
}

/** The stored times of a message. `due_at` is null if it is due immediately. */
export type Times = { scheduled_at: string | null; expires_at: string | null; due_at: string | null }

const NO_TIMES: Times = { scheduled_at: null, expires_at: null, due_at: null }

/** Computes the times of a message that is accepted now. */
export function computeTimes(when: When | undefined, now: Date): Times {
  if (!when) return NO_TIMES
  const { scheduled_at, expires_in } = when
  const due = Math.max(now.getTime(), scheduled_at === null ? 0 : Date.parse(scheduled_at))
  return {
    scheduled_at: toUtc(scheduled_at),
    expires_at: expires_in === null ? null : new Date(due + expires_in * 1_000).toISOString(),
    due_at: due > now.getTime() ? new Date(due).toISOString() : null,
  }
}

/** Returns the times to show, without those that the sender didn't set. */
export const shownTimes = ({ scheduled_at, expires_at }: Pick<Times, 'scheduled_at' | 'expires_at'>) => ({
  ...(scheduled_at === null ? {} : { scheduled_at }),
  ...(expires_at === null ? {} : { expires_at }),
})
