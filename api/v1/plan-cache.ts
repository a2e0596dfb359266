/**
 * The cached catalog of plans. It is read at most once a minute, so changes are visible within about a
 * minute. Concurrent requests share a query. Failed reads aren't cached.
 */

import { allPlans, type PlanRow } from '../../db/accounts/plans/plans.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'

const CATALOG_TTL_MS = 60_000

/** The cached catalog. `left` is how many milliseconds it remains valid. */
type CachedPlans = { plans: readonly PlanRow[]; left: number }

export type Catalog = (tx: Tx, now: Date) => Promise<CachedPlans>

export function createCatalog(): Catalog {
  let kept: { plans: Promise<readonly PlanRow[]>; until: number } | null = null
  const read = (tx: Tx, until: number) => {
    const fresh = { plans: allPlans(tx), until }
    fresh.plans.catch(() => {
      if (kept === fresh) kept = null
    })
    return fresh
  }
  return async (tx, now) => {
    const time = now.getTime()
    if (!kept || time >= kept.until) kept = read(tx, time + CATALOG_TTL_MS)
    const { plans, until } = kept
    return { plans: await plans, left: until - time }
  }
}
