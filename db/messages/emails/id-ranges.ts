/**
 * Divides a period into ID ranges to search one by one, newest first. Each range is sized to be read within the
 * user's patience and the statement timeout.
 */

const HOUR = 3_600_000
/** How far the database's clock may be ahead of ours. The first range reaches as far into the past. */
const CLOCK_AHEAD_MS = HOUR
/** The target time for reading one range, in milliseconds, far below the statement timeout. */
const LONGEST_STRETCH_MS = 1_000

export const latest = (now: Date): number => now.getTime() + CLOCK_AHEAD_MS

/** Yields the ranges between `first` and `last`, in milliseconds. Ends early after `patience` milliseconds. */
export function* stretches(
  { first, last }: { first: number; last: number },
  patience: number,
): Generator<{ from: Date; to: Date }> {
  const started = performance.now()
  let width = CLOCK_AHEAD_MS + HOUR
  for (let end = last; end > first; ) {
    const began = performance.now()
    const from = Math.max(first, end - width)
    yield { from: new Date(from), to: new Date(end) }
    end = from
    const ended = performance.now()
    if (ended - started > patience) return
    // A range twice as long needs about twice the time, so it is only started if it can end in time.
    const took = ended - began
    const growth = Math.min(2, Math.max(1, (started + patience - ended) / took))
    width *= Math.min(growth, LONGEST_STRETCH_MS / took)
  }
}
