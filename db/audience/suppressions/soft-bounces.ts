/** Decides the effect of consecutive soft bounces on an address. Pure. DECISIONS: Suppression. */
import type { Cause } from '../contacts/effect.ts'

/** How many soft bounces in a row, without a delivery in between, suppress an address. */
export const SOFT_BOUNCES = 5

/** What is known of an address. Times are milliseconds since 1970. */
type SoftFacts = {
  /** Null if it isn't suppressed. */
  cause: Cause | null
  since: number | null
  /** The newest soft bounces after it was last lifted, newest first, at most SOFT_BOUNCES. */
  softs: readonly number[]
  /** The last delivery: a report of one, or an email that counts as one. */
  delivered_at: number | null
}

/**
 * Decides whether soft bounces suppress an address, or whether a delivery ends that. A suppression that was judged to
 * be no hard bounce has no such row, and ends with a delivery after it began.
 */
export function judgeSoftBounces({
  cause,
  since,
  softs,
  delivered_at,
}: SoftFacts): 'suppress' | 'release' | 'keep' {
  const first = softs[SOFT_BOUNCES - 1]
  const isRow = first !== undefined && (delivered_at === null || first >= delivered_at)
  if (cause === null) return isRow ? 'suppress' : 'keep'
  if (cause !== 'soft_bounces' || isRow || delivered_at === null) return 'keep'
  return first !== undefined || delivered_at > (since ?? 0) ? 'release' : 'keep'
}
