/**
 * The times that clients give: when something is to be sent, and until when. Pure.
 * Promises: a time has its zone, is a date of the calendar, and is kept to the millisecond; a client may be five
 * minutes late, and then means now.
 */
import { RequestError } from '../errors.ts'

const A_TIME = /^(\d{4}-\d{2}-\d{2})T(?!24)\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i

/**
 * Whether a text is an RFC 3339 time: with seconds, not 24:00, which JavaScript reads as the next day, and with a year
 * in UTC, as it is stored and shown, of four digits.
 */
export function isMoment(text: string): boolean {
  const [, day] = A_TIME.exec(text) ?? []
  const year = new Date(text).getUTCFullYear()
  if (day === undefined || !(year >= 1 && year <= 9_999)) return false
  // A day that its month does not have is taken for one of the next.
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

/** A time in UTC, whatever zone a client gave it in: PostgreSQL reads none beyond ±15:59. */
export const utcOf = (time: string | null): string | null =>
  time === null ? null : new Date(time).toISOString()

/** How far ahead a time may be, and how late a client. */
const MAX_DAYS_AHEAD = 90
const EXAMPLE_DAYS_AHEAD = 14

/** A time to show as an example: one that a send may have. It is the same for a day. */
export function exampleMoment(now: Date, daysAhead = EXAMPLE_DAYS_AHEAD): string {
  const day = new Date(now.getTime() + daysAhead * 86_400_000).toISOString().slice(0, 10)
  return `${day}T09:00:00Z`
}
const MAX_MINUTES_LATE = 5

/** What is wrong with a time to send at, after its field's name; null when it may be. */
export function momentFault(time: string, now: Date): string | null {
  const ahead = Date.parse(time) - now.getTime()
  if (ahead > MAX_DAYS_AHEAD * 86_400_000) return `must be at most ${MAX_DAYS_AHEAD} days ahead`
  if (ahead >= -MAX_MINUTES_LATE * 60_000) return null
  return `must not be more than ${MAX_MINUTES_LATE} minutes in the past`
}

/** What a send says of its time: when it is to go, and for how many seconds from then on it is worth sending. */
export type When = { scheduled_at: string | null; expires_in: number | null }

/** Bounds of `expires_in`, in seconds. */
export const EXPIRES_IN = { min: 60, max: 86_400 } as const

/** Why a send cannot have the time that it asks for; null when it can. @param path where it lies in a call. */
export function timeError({ when, path }: { when?: When; path: string }, now: Date): RequestError | null {
  const problem = when?.scheduled_at ? momentFault(when.scheduled_at, now) : null
  return problem === null ? null : new RequestError('bad_request', { field: `${path}scheduled_at`, problem })
}

/** What a message is stored with. `due_at`: null when it goes at once. */
export type Times = { scheduled_at: string | null; expires_at: string | null; due_at: string | null }

const NO_TIMES: Times = { scheduled_at: null, expires_at: null, due_at: null }

/** The times of a message that is accepted now. */
export function timesOf(when: When | undefined, now: Date): Times {
  if (!when) return NO_TIMES
  const { scheduled_at, expires_in } = when
  const due = Math.max(now.getTime(), scheduled_at === null ? 0 : Date.parse(scheduled_at))
  return {
    scheduled_at: utcOf(scheduled_at),
    expires_at: expires_in === null ? null : new Date(due + expires_in * 1_000).toISOString(),
    due_at: due > now.getTime() ? new Date(due).toISOString() : null,
  }
}

/** The times that a row shows: those that its sender gave. */
export const givenTimes = ({ scheduled_at, expires_at }: Pick<Times, 'scheduled_at' | 'expires_at'>) => ({
  ...(scheduled_at === null ? {} : { scheduled_at }),
  ...(expires_at === null ? {} : { expires_at }),
})
