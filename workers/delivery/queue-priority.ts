/**
 * How much a queue may claim while what matters more waits for slots of the same process: webhooks, while mail waits.
 * Promises: nothing is held back while nobody waits. Meanwhile one is claimed for each eight of the others that begin,
 * or a few in each second, half a second's together; and twice as many with each ten seconds for which the queue has
 * been behind, so that it never starves. Knows numbers alone.
 */

/** A queue that others yield to. */
export type HigherPriority = {
  /** When one of them waited for a slot last, by `performance.now()`: now, while one does. */
  lastStarvedAt(): number
  /** How many have begun since the process started. */
  begun(): number
}

export type Yielding = {
  /** How many may be claimed now. */
  claimable(): number
  /** Takes note of a claim, of how many that were asked for. */
  claimed(count: number, asked: number): void
}

/** What may be claimed for each of the others that begins, and in a second whatever they do. */
const YIELDING_SHARE = 1 / 8
const MIN_PER_SECOND = 20
/** Milliseconds: what is claimed together, and how long it takes until twice as many are. */
const CLAIM_INTERVAL_MS = 500
const DOUBLING_MS = 10_000
/**
 * For how long nobody has waited when nobody does any more: between two batches of a backlog none does for a moment.
 */
const STARVED_GRACE_MS = 100

/** @param clock `performance.now()`, or a test's. */
export function createYielding(prior: readonly HigherPriority[], clock = () => performance.now()): Yielding {
  const begun = () => prior.reduce((sum, each) => sum + each.begun(), 0)
  let last = { at: clock(), begun: begun() }
  /** Since when more has waited than was claimed. */
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
