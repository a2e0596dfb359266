/** The period of a monthly quota (DECISIONS: Periods). Pure: the time is passed as `now`. All in UTC. */

const DAY = 86_400_000

/** Half open: `start` is in the period, `end` is not. */
export type Period = { start: Date; end: Date }

export function calendarMonth(now: Date): Period {
  const year = now.getUTCFullYear()
  const month = now.getUTCMonth()
  return { start: new Date(Date.UTC(year, month, 1)), end: new Date(Date.UTC(year, month + 1, 1)) }
}

/**
 * Returns a subscription's period at `now`. After its end without a new invoice it rolls over: by calendar months if
 * it is an integer number of months (Jan 31 → Feb 28 → Mar 31), otherwise by its length. Before its start, the first
 * period counts.
 */
export function rolledPeriod(period: Period, now: Date): Period {
  const months = countMonths(period)
  return months === null ? rolledByLength(period, now) : rolledByMonths(period, months, now)
}

function rolledByLength({ start, end }: Period, now: Date): Period {
  const length = end.getTime() - start.getTime()
  const passed = Math.max(0, Math.floor((now.getTime() - start.getTime()) / length))
  const first = start.getTime() + passed * length
  return { start: new Date(first), end: new Date(first + length) }
}

function rolledByMonths(period: Period, months: number, now: Date): Period {
  const { start, end } = period
  const day = Math.max(start.getUTCDate(), end.getUTCDate())
  const startAfter = (count: number): Date => inMonth(start, count * months, day)
  // The month of `now` may start before the day of the period.
  let passed = Math.max(0, Math.floor(monthsBetween(start, now) / months))
  if (passed > 0 && startAfter(passed) > now) passed -= 1
  return { start: startAfter(passed), end: startAfter(passed + 1) }
}

/**
 * Returns the number of calendar months in a period, or null if it isn't an integer. A shorter month ends earlier,
 * but the next one doesn't.
 */
function countMonths({ start, end }: Period): number | null {
  const months = monthsBetween(start, end)
  const day = Math.max(start.getUTCDate(), end.getUTCDate())
  const fits =
    inMonth(start, 0, day).getTime() === start.getTime() &&
    inMonth(start, months, day).getTime() === end.getTime()
  return months > 0 && fits ? months : null
}

const monthsBetween = (from: Date, to: Date): number =>
  (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth()

/** Returns a time of day some months later, on this day or the month's last. */
function inMonth(from: Date, months: number, day: number): Date {
  const first = Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months, 1)
  const last = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months + 1, 0)).getUTCDate()
  return new Date(first + (Math.min(day, last) - 1) * DAY + (from.getTime() % DAY))
}
