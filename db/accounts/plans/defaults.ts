/** Default limits of plans without a value in the catalog (DECISIONS: Default quotas). */
import type { PlanRow } from './plans.sql.ts'
import { type AnyQuota, byQuota, type LimitColumn } from './quotas.ts'

const BURST = 5

/** Returns the size of a team's bucket for a rate in sends per second. */
export const computeBurst = (rate: number): number => BURST * rate

type Kind = PlanRow['kind']

/** In sends per second. */
const RATES: Record<Kind, number> = { free: 1, paid: 10, custom: 10 }

/** The limits of a kind of plan. Null means no limit, in kinds that allow it. `rate` is in sends per second. */
type Figures<K extends Kind> = { [Q in AnyQuota as Q['name']]: number | Q['defaults'][K] } & { rate: number }

/** Returns the limits of a plan of this kind: its own values, otherwise the defaults. */
export function planFigures<K extends Kind>(
  kind: K,
  set: Partial<Pick<PlanRow, LimitColumn | 'send_rate_per_second'>> = {},
): Figures<K> {
  const limits = byQuota(({ limit, defaults }) => set[limit] ?? defaults[kind])
  return { ...limits, rate: set.send_rate_per_second ?? RATES[kind] } as Figures<K>
}
