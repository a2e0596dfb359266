/** Decides the effect of soft bounces in a row on an address. Pure. DECISIONS: Suppression. */
import type { Cause } from '../contacts/effect.ts'

/** Soft bounces in a row, without a delivery in between, that suppress an address. */
export const SOFT_BOUNCES = 5

/** The facts about an address. Times are in milliseconds since 1970. */
type SoftFacts = {
  /** Null if it isn't suppressed. */
  cause: Cause | null
  since: number | null
  /** The newest soft bounces since the last lift, newest first, at most SOFT_BOUNCES. */
  softs: readonly number[]
  /** The last delivery, reported or assumed. */
  delivered_at: number | null
}

/**
 * Decides if soft bounces suppress an address, or if a delivery ends their suppression. A permanent bounce that
 * copy.ts classified as soft ends with the first delivery after it.
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
