/**
 * The period that a monthly allowance counts for (contract §8, decisions: periods). Pure: time arrives as `now`.
 * All in UTC.
 */

/** Half open: `start` is in the period, `end` is not. */
export type Period = { start: Date; end: Date }

/** The calendar month that holds `now`. */
export function calendarMonth(now: Date): Period {
  const year = now.getUTCFullYear()
  const month = now.getUTCMonth()
  return { start: new Date(Date.UTC(year, month, 1)), end: new Date(Date.UTC(year, month + 1, 1)) }
}

/**
 * A subscription's period as it stands at `now`: once its end has passed without a new invoice it rolls on by its
 * own length. Before its start it has not begun to roll: the first period counts.
 */
export function rolledPeriod(period: Period, now: Date): Period {
  const length = period.end.getTime() - period.start.getTime()
  const passed = Math.max(0, Math.floor((now.getTime() - period.start.getTime()) / length))
  const start = period.start.getTime() + passed * length
  return { start: new Date(start), end: new Date(start + length) }
}
