/** Rows of the plan catalog. */
import { sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { columnsOf, row } from '../../postgres/rows.ts'
import { byLimit, QUOTAS } from './quotas.ts'

/** Languages of the catalog; the first is the fallback. */
export const LOCALES = ['en', 'fr'] as const
export type Locale = (typeof LOCALES)[number]

const words = mixed<Record<Locale, string>>()
const count = number().nullable()

const planRow = row({
  key: string(),
  product: string().oneOf(['transactional', 'marketing']),
  kind: string().oneOf(['free', 'paid', 'custom']),
  name: words,
  blurb: words,
  cta: words,
  benefits: mixed<Record<Locale, string[]>>(),
  featured: boolean(),
  ...byLimit(() => count),
  domains_limit: count,
  storage_gb: count,
  send_rate_per_second: count,
  overage_per_1000_cents: count,
  tiers: array(
    mixed<{ emails: number; monthly_cents: number; annual_cents?: number | undefined }>(),
  ).nullable(),
  contacts_tiers: array(mixed<{ contacts: number; monthly_cents: number }>()).nullable(),
})
export type PlanRow = InferType<typeof planRow>

const columns = Object.keys(planRow.fields)

export const allPlans = (tx: Tx) =>
  tx.any(sql.type(planRow)`
    select ${columnsOf(columns)} from plans order by position`)

const nameRow = row({ name: words })

/** Returns the English name of a plan. An unknown plan is its key. */
export async function planName(tx: Tx, key: string): Promise<string> {
  const found = await tx.maybeOneFirst(sql.type(nameRow)`
    select name from plans where key = ${key}`)
  return found?.en ?? key
}

/** Blocks others from replacing the catalog until the transaction ends. Reads aren't blocked. */
export const lockPlans = (tx: Tx) => tx.query(sql.unsafe`lock table plans in share row exclusive mode`)

/** Replaces the catalog with these plans, in their order. Plans that are absent are removed. */
export async function replacePlans(tx: Tx, plans: readonly PlanRow[]): Promise<void> {
  await tx.query(sql.unsafe`
    delete from plans where not key = any(${sql.array(
      plans.map((plan) => plan.key),
      'text',
    )})`)
  const rows = plans.map((plan, position) => ({ ...plan, position }))
  const written = ['position', ...columns]
  // By name, so that a column of a newer version gets its default.
  await tx.query(sql.unsafe`
    insert into plans (${columnsOf(written)})
    select ${columnsOf(written)} from json_populate_recordset(null::plans, ${JSON.stringify(rows)}::json)
    on conflict (key) do update set (${columnsOf(written)}) = row(${columnsOf(written, 'excluded')})`)
}

const teamsOnPlan = row({ plan_key: string(), teams: number() })

export async function plansInUse(tx: Tx): Promise<ReadonlyMap<string, number>> {
  const rows = await tx.any(sql.type(teamsOnPlan)`
    select plan_key, count(*) as teams from subscriptions group by plan_key`)
  return new Map(rows.map((row) => [row.plan_key, row.teams]))
}

const useRow = row({ plan_key: string(), teams: number(), own: number() })
export type PlanUse = InferType<typeof useRow>

/** The columns of a team's own limits. */
const OWN_LIMITS = ['send_rate_per_second', 'storage_gb', ...QUOTAS.map(({ limit }) => limit)]

/**
 * Counts the teams on each plan, and those with own limits, among the first teams.
 * @param most the maximum number of teams.
 */
export async function planUse(tx: Tx, most: number): Promise<ReadonlyMap<string, PlanUse>> {
  const rows = await tx.any(sql.type(useRow)`
    with subscription as (select * from subscriptions limit ${most})
    select plan_key, count(*) as teams, count(*) filter (where num_nonnulls(${columnsOf(OWN_LIMITS)}) > 0) as own
    from subscription group by plan_key`)
  return new Map(rows.map((one) => [one.plan_key, one]))
}
