/** How long a deferred message waits. Pure. */

const FIRST_PAUSE_S = 2
const MAX_PAUSE_S = 1_800

/**
 * Returns the pause before a retry, in seconds: 2 to 4 s, doubled with each attempt up to half an hour, and at least
 * the provider's wait.
 * @param deferrals the number of earlier deferrals.
 * @param spread from 0 to 1, to separate messages that were deferred together.
 */
export function retryPause(deferrals: number, wait_seconds: number | undefined, spread: number): number {
  const first = wait_seconds ?? FIRST_PAUSE_S * (1 + spread)
  const grown = first * 2 ** Math.min(deferrals, 16)
  return Math.max(wait_seconds ?? 0, Math.min(grown, MAX_PAUSE_S))
}
