/** Converts times to and from the reader's time zone, a cookie of dashboard.js. Unknown zones mean UTC. Pure. */
import { isMoment } from '../../../db/validation/moments.ts'
import { utc } from './cell.ts'

export function parseZone(name = 'UTC'): string {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return name
  } catch {
    return 'UTC'
  }
}

/** Returns the local time in a zone. Swedish formatting is ISO 8601, except for the T. */
const clockAt = (moment: Date, zone: string): string =>
  moment.toLocaleString('sv-SE', { timeZone: zone }).replace(' ', 'T')

/** Formats a time for a datetime-local field. */
export const toLocalTime = (iso: string, zone: string): string => clockAt(new Date(iso), zone).slice(0, 16)

/** Returns the UTC offset of a zone in milliseconds. */
const aheadAt = (time: number, zone: string): number => Date.parse(`${clockAt(new Date(time), zone)}Z`) - time

/**
 * Parses a local time in a zone. Invalid input is returned with a Z, so that validation rejects it. A time
 * that the switch to or from summer time skips or repeats becomes one of the two possible times. The user
 * confirms the result before a broadcast starts.
 */
export function parseLocalTime(typed: string, zone: string): string {
  // Browsers omit seconds of zero.
  const inUtc = /T\d\d:\d\d$/.test(typed) ? `${typed}:00Z` : `${typed}Z`
  if (!isMoment(inUtc)) return `${typed}Z`
  const asUtc = Date.parse(inUtc)
  const near = asUtc - aheadAt(asUtc, zone)
  const moment = new Date(asUtc - aheadAt(near, zone))
  return Number.isNaN(moment.getTime()) ? `${typed}Z` : moment.toISOString()
}

const PLANNED: Intl.DateTimeFormatOptions = {
  ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit' },
}

/** Formats a time in a zone with its weekday, such as `Tue, 1 Dec 2026, 09:00 in Europe/Berlin`. */
export function plannedWords(iso: string, zone: string): string {
  const words = new Date(iso).toLocaleString('en-GB', { ...PLANNED, timeZone: zone })
  return zone === 'UTC' ? `${words} UTC` : `${words} in ${zone}`
}

/** Formats a time in a zone and in UTC. */
export function momentWords(iso: string, zone: string): string {
  if (zone === 'UTC') return utc(iso)
  const words = new Date(iso).toLocaleString('en-GB', {
    timeZone: zone,
    dateStyle: 'medium',
    timeStyle: 'short',
  })
  return `${words} in ${zone} (${utc(iso)})`
}
