/** Decides the effect of soft bounces in a row on an address. Pure. DECISIONS: Suppression. */
import type { SoftFacts } from './addresses.sql.ts'

/** Soft bounces in a row, without a delivery in between, that suppress an address. */
export const SOFT_BOUNCES = 5

/**
 * Decides if soft bounces suppress an address, or if a delivery ends their suppression. A permanent bounce that
 * copy.ts classified as soft ends with the first delivery after it.
 */
export function judgeSoftBounces(facts: SoftFacts): 'suppress' | 'release' | 'keep' {
  const { cause, since, softs, delivered_at } = facts
  const first = softs[SOFT_BOUNCES - 1]
  const isRow = first !== undefined && (delivered_at === null || first >= delivered_at)
  if (cause === null) return isRow ? 'suppress' : 'keep'
  if (cause !== 'soft_bounces' || isRow || delivered_at === null) return 'keep'
  return first !== undefined || delivered_at > (since ?? 0) ? 'release' : 'keep'
}
