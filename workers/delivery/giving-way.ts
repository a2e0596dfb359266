/**
 * How much a queue may claim while what matters more waits for slots of the same process: webhooks, while mail waits.
 * Promises: nothing is held back while nobody waits. Meanwhile one is claimed for each eight of the others that begin,
 * or a few in each second, half a second's together; and twice as many with each ten seconds for which the queue has
 * been behind, so that it never starves. Knows numbers alone.
 */

/** What a queue gives way to. */
export type First = {
  /** When one of them waited for a slot last, by `performance.now()`: now, while one does. */
  shortAt(): number
  /** How many have begun since the process started. */
  begun(): number
}

export type GivingWay = {
  /** How many may be claimed now. */
  most(): number
  /** Takes note of a claim, of how many that were asked for. */
  claimed(count: number, asked: number): void
}

/** For each of the others that begins, and in a second whatever they do. */
const PART = 1 / 8
const PER_SECOND = 20
/** Milliseconds: what is claimed together, and how long it takes until twice as many are. */
const TOGETHER = 500
const DOUBLED = 10_000
/**
 * For how long nobody has waited when nobody does any more: between two batches of a backlog none does for a moment.
 */
const RECENT = 100

/** @param clock `performance.now()`, or a test's. */
export function createGivingWay(first: readonly First[], clock = () => performance.now()): GivingWay {
  const begun = () => first.reduce((sum, each) => sum + each.begun(), 0)
  let last = { at: clock(), begun: begun() }
  /** Since when more has waited than was claimed. */
  let behind: number | null = null
  return {
    most() {
      const now = clock()
      if (first.every((each) => now - each.shortAt() > RECENT)) return Number.POSITIVE_INFINITY
      behind ??= now
      const passed = now - last.at
      if (passed < TOGETHER) return 0
      const share = Math.max((begun() - last.begun) * PART, PER_SECOND * (TOGETHER / 1_000))
      return Math.floor(share * 2 ** ((now - behind) / DOUBLED))
    },
    claimed(count, asked) {
      last = { at: clock(), begun: begun() }
      if (count < asked) behind = null
    },
  }
}
