/**
 * A signal for one piece of work that several signals cut off, of which one may live as long as the process.
 * Promises: released, it leaves nothing behind. AbortSignal.any has no such end: the long-lived signal keeps an entry
 * for each piece of work until the collector has found that it is over.
 */

/** Aborts as the first of the signals does, with its reason. To be released when the work is over. */
export function joinSignals(...signals: readonly (AbortSignal | null | undefined)[]): {
  signal: AbortSignal
  release(): void
} {
  const joined = new AbortController()
  const given = signals.filter((each) => each != null)
  const release = () => {
    for (const each of given) each.removeEventListener('abort', abort)
  }
  const abort = () => {
    release()
    joined.abort(given.find(({ aborted }) => aborted)?.reason)
  }
  for (const each of given) each.addEventListener('abort', abort)
  if (given.some(({ aborted }) => aborted)) abort()
  return { signal: joined.signal, release }
}
