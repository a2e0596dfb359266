/**
 * Divides a stretch of time into parts to look through one by one, the newest first, each about as long to read as a
 * person waits for, or as a statement may take.
 * Promises: the parts leave nothing out and do not overlap. Must not read anything itself.
 */

const HOUR = 3_600_000
/** By how much the database's clock may be ahead of ours. The first part reaches as far into the past. */
const CLOCK_AHEAD_MS = HOUR
/** How long reading one part should take at most, in milliseconds: far below the limit of a statement. */
const LONGEST_STRETCH_MS = 1_000

/** The time after which nothing was accepted yet. */
export const latest = (now: Date): number => now.getTime() + CLOCK_AHEAD_MS

/**
 * The parts of the time from `first` to `last`, in milliseconds. What is done between two of them shows how long
 * reading takes. Ends early when `patience`, in milliseconds, is over.
 */
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
    // A part twice as long takes about twice as long: it is begun only if that ends in time, or nearly.
    const took = ended - began
    const growth = Math.min(2, Math.max(1, (started + patience - ended) / took))
    width *= Math.min(growth, LONGEST_STRETCH_MS / took)
  }
}
