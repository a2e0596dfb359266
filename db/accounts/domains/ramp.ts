/** Ramps up a sending domain without history: the limits of today and tomorrow. Pure. DECISIONS: Ramp-up. */

export type RampStart = { limit: number; factor: number }

/** The default on pages, and the factor of a manual ramp. */
export const USUAL_RAMP: RampStart = { limit: 500, factor: 2 }
/** A ramp ends once its limit reaches this. */
export const TOP = 100_000
/** A domain with fewer accepted emails in 30 days has no history. */
export const HISTORY_EMAILS = 1_000
export const HISTORY_DAYS = 30

/** Parses `500x2`. Null for `off`, undefined for anything else. */
export function parseRampStart(text: string): RampStart | null | undefined {
  if (text === 'off') return null
  const [, limit, factor] = /^(\d{1,6})x(\d{1,3}(?:\.\d{1,3})?)$/.exec(text) ?? []
  const start = { limit: Number(limit), factor: Number(factor) }
  return start.limit > 0 && start.factor >= 1 ? start : undefined
}

type Day = { limit: number; used: number; bounced: number; complained: number }

/** Returns the next day's limit: it grows if half of it was used, with few bounces and complaints. */
function nextLimit({ limit, used, bounced, complained }: Day, factor: number): number {
  const isGood = used * 2 >= limit && bounced * 100 < used * 2 && complained * 1_000 < used
  return isGood ? Math.min(TOP, Math.max(limit, Math.floor(limit * factor))) : limit
}

/** Returns today's limit, and how many of it are used, from the last day on which emails were sent. */
export function rampToday({
  is_today,
  factor,
  ...day
}: Day & { is_today: boolean; factor: number }): Pick<Day, 'limit' | 'used'> {
  return is_today ? { limit: day.limit, used: day.used } : { limit: nextLimit(day, factor), used: 0 }
}

/** Counts the days after today until this many emails are sent, if each day is a good one. */
export function daysLeft(
  emails: number,
  { limit, left, factor }: { limit: number; left: number; factor: number },
): number {
  let [rest, today, days] = [emails - left, limit, 0]
  for (; rest > 0 && today < TOP; days++) {
    today = Math.floor(today * factor)
    if (factor === 1) return Math.ceil(rest / today)
    rest -= today
  }
  return days
}

/** Returns why an email waits for tomorrow. */
export const rampReached = ({ name, limit }: { name: string; limit: number }): string =>
  `Today’s limit of ${limit.toLocaleString('en-US')} broadcast emails from ${name} is reached. More are sent on the next day (UTC)`
