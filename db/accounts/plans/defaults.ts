/**
 * What a plan allows where its catalog sets no figure (DECISIONS: Default quotas). Pure.
 * Promises: the limits that are enforced and the catalog that is shown say the same, since both ask here.
 */
import type { PlanRow } from './plans.sql.ts'
import { type AnyQuota, byQuota, type LimitColumn } from './quotas.ts'

const BURST = 5

/** How many sends a team's bucket holds at most, for a rate in sends per second. */
export const burstOf = (rate: number): number => BURST * rate

type Kind = PlanRow['kind']

/** In sends per second. */
const RATES: Record<Kind, number> = { free: 1, paid: 10, custom: 10 }

/** What a plan of a kind allows; null means no limit, where there is such a plan. `rate` is in sends per second. */
type Figures<K extends Kind> = { [Q in AnyQuota as Q['name']]: number | Q['defaults'][K] } & { rate: number }

/** The figures of a plan of this kind: those that are set, else the defaults. */
export function planFigures<K extends Kind>(
  kind: K,
  set: Partial<Pick<PlanRow, LimitColumn | 'send_rate_per_second'>> = {},
): Figures<K> {
  const limits = byQuota(({ limit, defaults }) => set[limit] ?? defaults[kind])
  return { ...limits, rate: set.send_rate_per_second ?? RATES[kind] } as Figures<K>
}
