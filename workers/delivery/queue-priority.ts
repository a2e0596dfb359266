/**
 * Limits how much a lower-priority queue claims while others wait for slots of the same process: webhooks while email
 * waits. It may claim one for every eight that the others start, or at least a few per second, batched every half
 * second. That doubles with every ten seconds that the queue is behind, so it never starves.
 */

export type HigherPriority = {
  /** Returns when one of its messages last waited for a slot, by `performance.now()`. Now, if one is waiting. */
  lastStarvedAt(): number
  /** Returns how many of its messages have started since the process started. */
  begun(): number
}

export type Yielding = { claimable(): number; claimed(count: number, asked: number): void }

/** How many may be claimed for each message that the others start, and per second in any case. */
const YIELDING_SHARE = 1 / 8
const MIN_PER_SECOND = 20
/** Milliseconds between claims, and until the number of claimed messages doubles. */
const CLAIM_INTERVAL_MS = 500
const DOUBLING_MS = 10_000
/** How long the others count as waiting after the last one waited. Between two batches none waits. */
const STARVED_GRACE_MS = 100

/** @param clock is `performance.now()`, or a test's. */
export function createYielding(prior: readonly HigherPriority[], clock = () => performance.now()): Yielding {
  const begun = () => prior.reduce((sum, each) => sum + each.begun(), 0)
  let last = { at: clock(), begun: begun() }
  /** Since when more is waiting than was claimed. */
  let behind: number | null = null
  return {
    claimable() {
      const now = clock()
      if (prior.every((each) => now - each.lastStarvedAt() > STARVED_GRACE_MS))
        return Number.POSITIVE_INFINITY
      behind ??= now
      const passed = now - last.at
      if (passed < CLAIM_INTERVAL_MS) return 0
      const share = Math.max(
        (begun() - last.begun) * YIELDING_SHARE,
        MIN_PER_SECOND * (CLAIM_INTERVAL_MS / 1_000),
      )
      return Math.floor(share * 2 ** ((now - behind) / DOUBLING_MS))
    },
    claimed(count, asked) {
      last = { at: clock(), begun: begun() }
      if (count < asked) behind = null
    },
  }
}
