/** Describes the changes of a new plan catalog, and the number of affected teams. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { PlanRow, PlanUse } from '../../../../db/accounts/plans/plans.sql.ts'
import { QUOTAS } from '../../../../db/accounts/plans/quotas.ts'
import { plural } from '../../../../db/plural.ts'
import { number } from '../../components/cell.ts'
import { compact } from '../../server/builders.ts'

const LIMITS = [
  ...QUOTAS.map(({ limit, noun }) => ({ name: limit, label: noun })),
  { name: 'domains_limit', label: 'domains' },
  { name: 'send_rate_per_second', label: 'emails per second' },
  { name: 'storage_gb', label: 'GB of attachments' },
] as const

/** Compares plans as JSON, where undefined values are missing. */
const isSame = (one: PlanRow, other: PlanRow): boolean =>
  isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)))

const formatLimit = (value: number | null): string => (value === null ? 'default' : number(value).text)

const MAX_DESCRIBED = 6

function describePlan(before: PlanRow | undefined, after: PlanRow | undefined, use?: PlanUse): string {
  if (after === undefined) return before ? `${before.name.en} is removed.` : ''
  if (before === undefined) return `${after.name.en} is new.`
  const limits = LIMITS.filter(({ name }) => before[name] !== after[name]).map(
    ({ name, label }) => `${label} ${formatLimit(before[name])} → ${formatLimit(after[name])}`,
  )
  if (limits.length === 0)
    return isSame(before, after) ? '' : `${after.name.en}: only texts or prices change.`
  const { teams = 0, own = 0 } = use ?? {}
  const affected = compact<string>([
    plural(teams, 'team'),
    own > 0 && `${number(own).text} of them with their own limits`,
  ])
  return `${after.name.en}: ${limits.join(', ')} (${affected.join(', ')}).`
}

/** @param use the use of each plan, by its key. */
export function describeChanges(
  before: readonly PlanRow[],
  after: readonly PlanRow[],
  use: ReadonlyMap<string, PlanUse>,
): string {
  const find = (plans: readonly PlanRow[], key: string) => plans.find((plan) => plan.key === key)
  const keys = new Set([...before, ...after].map(({ key }) => key))
  const changes = compact(
    [...keys].map((key) => describePlan(find(before, key), find(after, key), use.get(key))),
  )
  if (changes.length === 0) return 'Nothing changes.'
  const rest = changes.length - MAX_DESCRIBED
  return compact<string>([changes.slice(0, MAX_DESCRIBED), rest > 0 && `${plural(rest, 'more plan')}.`]).join(
    ' ',
  )
}
