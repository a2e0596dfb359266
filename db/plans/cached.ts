/**
 * The catalog as a process keeps it: read at most once a minute, so that changes surface within about a minute
 * (contract §4.4). Promises: many callers at once cost one query; a failed read is not kept.
 */
import type { Tx } from '../pool.ts'
import { allPlans, type PlanRow } from './table.ts'

/** How long a reading serves, in milliseconds. */
export const CATALOG_AGE = 60_000

export type Catalog = (tx: Tx, now: Date) => Promise<readonly PlanRow[]>

/** Makes a process's own cache of the catalog. */
export function createCatalog(): Catalog {
  let reading: { plans: Promise<readonly PlanRow[]>; until: number } | null = null
  return async (tx, now) => {
    if (reading && now.getTime() < reading.until) return await reading.plans
    const fresh = { plans: allPlans(tx), until: now.getTime() + CATALOG_AGE }
    reading = fresh
    fresh.plans.catch(() => {
      if (reading === fresh) reading = null
    })
    return await fresh.plans
  }
}
