/** How long a message waits that was deferred. Pure. */

const FIRST_PAUSE_S = 2
const MAX_PAUSE_S = 1_800

/**
 * Grows with each attempt: 2 to 4 s, doubled each time, half an hour at most, and at least what the provider asks for.
 * @param deferrals how often the message was deferred before. @param spread from 0 to 1: separates messages that were
 * deferred together. @returns seconds
 */
export function retryPause(deferrals: number, wait_seconds: number | undefined, spread: number): number {
  const first = wait_seconds ?? FIRST_PAUSE_S * (1 + spread)
  const grown = first * 2 ** Math.min(deferrals, 16)
  return Math.max(wait_seconds ?? 0, Math.min(grown, MAX_PAUSE_S))
}
