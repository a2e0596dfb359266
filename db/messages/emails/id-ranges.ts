/** Divides a period into ranges of IDs to search one by one, newest first. They cover it without overlaps. */
import { partLengths } from '../../postgres/search-parts.ts'

const HOUR = 3_600_000
/** How far the database's clock may be ahead of ours. The first range reaches as far into the past. */
export const CLOCK_AHEAD_MS = HOUR
export const latest = (now: Date): number => now.getTime() + CLOCK_AHEAD_MS

/** Yields the ranges between `first` and `last`, in milliseconds. Ends early after `patience` milliseconds. */
export function* stretches(
  { first, last }: { first: number; last: number },
  patience: number,
): Generator<{ from: Date; to: Date }> {
  let end = last
  for (const width of partLengths({ first: CLOCK_AHEAD_MS + HOUR }, patience)) {
    if (end <= first) return
    const from = Math.max(first, end - width)
    yield { from: new Date(from), to: new Date(end) }
    end = from
  }
}
