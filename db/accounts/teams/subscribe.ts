/**
 * Changes a team's subscription: plan, own limits, billing period. If the period changes, usage is counted again from
 * the stored rows. A new plan resets the own limits. Runs under the account's lock. DECISIONS: Limits of a team,
 * Periods.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { type Caller, record } from '../audit/record.ts'
import { computeBurst } from '../plans/defaults.ts'
import { LARGEST_FIGURE, LARGEST_RATE } from '../plans/limits.ts'
import type { Period } from '../plans/period.ts'
import { QUOTAS } from '../plans/quotas.ts'
import { TEXTS } from '../texts.ts'
import { planForTeams } from './create.ts'
import { currentPeriod, saveAccount, toAccount } from './limits.ts'
import { readBulkPause } from './reputation.sql.ts'
import {
  lockAccountRow,
  type OverridesRow,
  readOverrides,
  readSuppressTransactional,
  updateSubscription,
} from './teams.sql.ts'
import { usageIn } from './usage.sql.ts'
import { requireTeam, teamView } from './view.ts'

/** In gigabytes. */
const LARGEST_STORAGE = 1_000_000
// A bucket has 5 × rate tokens. With a lower rate it would never contain a full token, which a send needs.
const SMALLEST_RATE = 0.2

const LIMITS = QUOTAS.map(({ limit }) => limit)
const OVERRIDES = [...LIMITS, 'send_rate_per_second', 'storage_gb'] as const

/** A number is the team's own limit, null the plan's. An absent plan or limit doesn't change. */
export type SubscriptionChange = Partial<OverridesRow> & { plan?: string | undefined; period?: Period }

/** Returns the error of a change, or null. Pure. */
function subscriptionProblem(change: SubscriptionChange, now: Date): string | null {
  for (const field of LIMITS) {
    const limit = change[field]
    if (limit == null || (Number.isInteger(limit) && limit >= 0 && limit <= LARGEST_FIGURE)) continue
    return fill(TEXTS.limitNotWhole, { field, most: LARGEST_FIGURE })
  }
  const { send_rate_per_second: rate, storage_gb: storage, period } = change
  if (storage != null && !(storage >= 0 && storage <= LARGEST_STORAGE))
    return fill(TEXTS.storageOutOfRange, { most: LARGEST_STORAGE })
  if (rate != null && !(rate >= SMALLEST_RATE && rate <= LARGEST_RATE)) {
    return fill(TEXTS.rateOutOfRange, { least: SMALLEST_RATE, most: LARGEST_RATE })
  }
  if (period && period.end <= period.start) return TEXTS.periodEndsFirst
  if (period && period.start > now) return TEXTS.periodInFuture
  return null
}

/** Returns the team's own limits after a change. A new plan resets them. */
function overridesAfter(before: OverridesRow, change: SubscriptionChange, samePlan: boolean): OverridesRow {
  const kept: OverridesRow = { ...before }
  for (const figure of OVERRIDES) {
    const given = change[figure]
    if (given !== undefined) kept[figure] = given
    else if (!samePlan) kept[figure] = null
  }
  return kept
}

/** Describes a change for the audit log. @param was the plan before, if it is another one. */
function describeChange({ period, ...change }: SubscriptionChange, was: string | null): string {
  const limits = OVERRIDES.flatMap((name) =>
    change[name] === undefined ? [] : [`${name} ${change[name] ?? 'plan'}`],
  )
  return [
    ...(was === null ? [] : [`was ${was}`]),
    ...(limits.length === 0 ? [] : [`limits: ${limits.join(', ')}`]),
    ...(period ? [`period ${period.start.toISOString()} to ${period.end.toISOString()}`] : []),
  ].join(', ')
}

const samePeriod = (one: Period, other: Period): boolean =>
  one.start.getTime() === other.start.getTime() && one.end.getTime() === other.end.getTime()

/**
 * Changes a team's subscription. @throws RequestError not_found, or bad_request for an unknown plan or invalid
 * limits.
 */
export async function subscribeTeam(by: Caller, teamId: string, change: SubscriptionChange) {
  const { tx } = by
  const team = await requireTeam(tx, teamId)
  const before = toAccount(await lockAccountRow(tx, teamId))
  const plan = change.plan ?? before.plan
  if (change.plan !== undefined) await planForTeams(tx, plan)
  const problem = subscriptionProblem(change, before.now)
  if (problem) throw new RequestError('bad_request', problem)
  const overrides = overridesAfter(await readOverrides(tx, teamId), change, plan === before.plan)
  await updateSubscription(tx, teamId, { plan, overrides, period: change.period })
  const row = await lockAccountRow(tx, teamId)
  const after = { ...toAccount(row), period: currentPeriod(row, before.now) }
  const moved = !samePeriod(before.period, after.period)
  const used = moved ? { ...before.used, ...(await usageIn(tx, teamId, after.period)) } : before.used
  const tokens = Math.min(before.bucket.tokens, computeBurst(after.limits.rate))
  const account = { ...after, used, bucket: { ...before.bucket, tokens } }
  await saveAccount(tx, teamId, account)
  const detail = describeChange(change, plan === before.plan ? null : before.plan)
  await record(by, { team_id: teamId, action: 'team.plan', subject: plan, detail })
  const suppresses = await readSuppressTransactional(tx, teamId)
  return teamView(team, account, overrides, suppresses, await readBulkPause(tx, teamId))
}
