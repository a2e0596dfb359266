/**
 * Combines abort signals for one task. With AbortSignal.any, a long-lived signal keeps an entry per task until it is
 * garbage collected.
 */

/** Aborts with the reason of the first signal that aborts. Call `release` when the task is done. */
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
