/**
 * The reader's time zone, as their browser says (dashboard.js leaves it in a cookie), and times that are typed and
 * asked about in it. Pure. Promises: without a zone, or with an unknown one, it is UTC, and the words say so.
 */
import { isMoment } from '../../../db/validation/moments.ts'
import { utc } from './cell.ts'

export function zoneOf(name = 'UTC'): string {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return name
  } catch {
    return 'UTC'
  }
}

/** What clocks in a zone show at a moment. The Swedish way to write it is that of ISO 8601, but for the T. */
const clockAt = (moment: Date, zone: string): string =>
  moment.toLocaleString('sv-SE', { timeZone: zone }).replace(' ', 'T')

/** A moment as a field of the type datetime-local holds it. */
export const typedOf = (iso: string, zone: string): string => clockAt(new Date(iso), zone).slice(0, 16)

/** How far clocks in a zone are ahead of UTC, in milliseconds. */
const aheadAt = (time: number, zone: string): number => Date.parse(`${clockAt(new Date(time), zone)}Z`) - time

/**
 * The moment that was typed in a zone; what is no time stays as it is. A time that summer time leaves out or has twice
 * is one of the two beside it: what is asked before a start names which.
 */
export function momentOf(typed: string, zone: string): string {
  // Browsers leave seconds out where they are none.
  const inUtc = /T\d\d:\d\d$/.test(typed) ? `${typed}:00Z` : `${typed}Z`
  if (!isMoment(inUtc)) return `${typed}Z`
  const asUtc = Date.parse(inUtc)
  const near = asUtc - aheadAt(asUtc, zone)
  const moment = new Date(asUtc - aheadAt(near, zone))
  return Number.isNaN(moment.getTime()) ? `${typed}Z` : moment.toISOString()
}

/** A moment in words, in a zone and in UTC. */
export function momentWords(iso: string, zone: string): string {
  if (zone === 'UTC') return utc(iso)
  const words = new Date(iso).toLocaleString('en-GB', {
    timeZone: zone,
    dateStyle: 'long',
    timeStyle: 'short',
  })
  return `${words} in ${zone} (${utc(iso)})`
}
