/**
 * The catalog as a process keeps it: read at most once a minute, so that changes surface within about a minute.
 * Promises: many callers at once cost one query; a failed read is not kept.
 */

import { allPlans, type PlanRow } from '../../db/accounts/plans/plans.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'

/** How long a read of the catalog serves, in milliseconds. */
const CATALOG_TTL_MS = 60_000

/** The catalog as it was read. `left`: for how many milliseconds it still serves. */
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
