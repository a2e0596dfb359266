/**
 * A team's account: its limits, usage in the current period, and rate bucket. Each charge locks the account first and
 * saves before the commit, so that no limit is exceeded. Time and limits are read after locking, so that a committed
 * plan change applies to a charge that waited for it. No request runs COUNT(*).
 */

import { LINES, type LineName } from '../../channels/list.ts'
import { type RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { type Bucket, refill } from '../../process/bucket.ts'
import { fromKeys } from '../../validation/keys.ts'
import { computeBurst, planFigures } from '../plans/defaults.ts'
import { calendarMonth, type Period, rolledPeriod } from '../plans/period.ts'
import type { PlanRow } from '../plans/plans.sql.ts'
import { byQuota, byUse, isPeriodic, type QuotaName, USED } from '../plans/quotas.ts'
import { TEXTS } from '../texts.ts'
import {
  type AccountRow,
  type AllowanceValues,
  byPlace,
  lockAccountRow,
  lockFreeAccountRows,
  lockFreeWhatsappAccountRows,
  lockWhatsappAccountRow,
  type OwnNumber,
  saveAllowance,
  savingAllowances,
} from './teams.sql.ts'

/** null means no limit. `rate` is in sends per second. */
type Limits = Record<QuotaName, number | null> & {
  rate: number
  /** In bytes of attachments. */
  storage: number | null
}

/** `storage`: distinct bytes of attachments, in all periods. */
type Used = Record<QuotaName, number> & { storage: number }

/** Charging means raising `used` or lowering `bucket.tokens`, then `saveAccount`. */
export type Account = {
  plan: string
  /** True for a test team. It determines the queue (db/channels/queues.ts). */
  test: boolean
  limits: Limits
  period: Period
  used: Used
  bucket: Bucket
  /** The positions of the team's last jobs (db/queue/fair-queue.ts). */
  places: Record<LineName, number>
  /** The database's time, but never before the period, so that rows stored at this time belong to it. */
  now: Date
}

/** The period at `now`: the subscription's, or the calendar month (DECISIONS: Periods). */
export function currentPeriod(
  row: Pick<AccountRow, 'plan_kind' | 'subscription_start' | 'subscription_end'>,
  now: Date,
): Period {
  const { plan_kind, subscription_start, subscription_end } = row
  if (plan_kind === 'free' || subscription_start === null || subscription_end === null)
    return calendarMonth(now)
  return rolledPeriod({ start: new Date(subscription_start), end: new Date(subscription_end) }, now)
}

/** A gigabyte of the catalog, in bytes. */
const GB = 1e9

const storageBytes = (gb: number | null): number | null => (gb === null ? null : Math.floor(gb * GB))

/** Returns the account at the row's `now`: the period rolled over, the bucket refilled. */
export function toAccount(row: AccountRow): Account {
  const now = new Date(row.now)
  const stored: Period = { start: new Date(row.period_start), end: new Date(row.period_end) }
  const rolled = now < stored.end ? stored : currentPeriod(row, now)
  const fresh = rolled.start.getTime() !== stored.start.getTime()
  const limits = { ...planFigures(row.plan_kind, row), storage: storageBytes(row.storage_gb) }
  const bucket: Bucket = { tokens: row.bucket_tokens, refilled_at: new Date(row.refilled_at) }
  return {
    plan: row.plan,
    test: row.test,
    limits,
    period: rolled,
    used: {
      ...byQuota((quota) => (fresh && isPeriodic(quota) ? 0 : row[quota.used]), USED),
      storage: row.storage_used,
    },
    bucket: refill(bucket, { rate: limits.rate, capacity: computeBurst(limits.rate) }, now),
    places: fromKeys(LINES, (line) => row[`${line}_place`]),
    now: now < rolled.start ? rolled.start : now,
  }
}

export const lockAccount = async (tx: Tx, teamId: string): Promise<Account> =>
  toAccount(await lockAccountRow(tx, teamId))

type Locks<R, A> = {
  one: (tx: Tx, teamId: string) => Promise<R>
  free: (tx: Tx, teamIds: readonly string[]) => Promise<readonly R[]>
  toAccount: (row: R) => A
}

const lockEach =
  <R extends { team_id: string }, A>({ one, free, toAccount }: Locks<R, A>) =>
  async (tx: Tx, teamIds: readonly string[], lock: 'wait' | 'skip'): Promise<Map<string, A>> => {
    const wanted = [...new Set(teamIds)].toSorted()
    const rows: R[] = lock === 'skip' ? [...(await free(tx, wanted))] : []
    if (lock === 'wait') for (const teamId of wanted) rows.push(await one(tx, teamId))
    return new Map(rows.map((row) => [row.team_id, toAccount(row)]))
  }

/** Locks the accounts of teams in a global order. `skip` leaves out those that another transaction has locked. */
export const lockAccounts = lockEach({ one: lockAccountRow, free: lockFreeAccountRows, toAccount })

/** An account with the team's WhatsApp number. It is null for the default number and for a test team. */
export type WhatsappAccount = Account & { number: OwnNumber | null }

/** Does the same, and reads the WhatsApp number of each, which is slower. */
export const lockWhatsappAccounts = lockEach({
  one: lockWhatsappAccountRow,
  free: lockFreeWhatsappAccountRows,
  toAccount: (row): WhatsappAccount => ({ ...toAccount(row), number: row.number }),
})

const toAllowance = (account: Account): AllowanceValues => ({
  period_start: account.period.start.toISOString(),
  period_end: account.period.end.toISOString(),
  ...byUse(({ name }) => account.used[name]),
  storage_used: account.used.storage,
  bucket_tokens: account.bucket.tokens,
  refilled_at: account.bucket.refilled_at.toISOString(),
  ...byPlace((line) => account.places[line]),
})

/** Stores a locked account. */
export const saveAccount = (tx: Tx, teamId: string, account: Account) =>
  saveAllowance(tx, teamId, toAllowance(account))

/** Refunds deleted messages of this period to a locked account. */
export async function refundQuota(
  tx: Tx,
  teamId: string,
  account: Account,
  { quota, deleted }: { quota: QuotaName; deleted: readonly { created_at: string }[] },
): Promise<void> {
  const { start, end } = account.period
  const counted = deleted.filter(({ created_at }) => {
    const created = new Date(created_at)
    return created >= start && created < end
  })
  if (counted.length === 0) return
  account.used[quota] = Math.max(0, account.used[quota] - counted.length)
  await saveAccount(tx, teamId, account)
}

/** The part of a statement that saves locked accounts, to store charges and rows in one round trip. */
export const buildCharges = (accounts: ReadonlyMap<string, Account>) =>
  savingAllowances(new Map([...accounts].map(([teamId, account]) => [teamId, toAllowance(account)])))

export const buildCharge = (teamId: string, account: Account) => buildCharges(new Map([[teamId, account]]))

/** Returns the rest of a limit. Infinity without a limit. */
export const left = (limit: number | null, used: number): number =>
  limit === null ? Number.POSITIVE_INFINITY : Math.max(0, limit - used)

/** Returns an error if the added bytes exceed the team's storage, or null. */
export function storageError({ limits, used }: Account, added: number): RequestError | null {
  const { storage: limit } = limits
  if (added === 0 || limit === null || used.storage + added <= limit) return null
  return requestError('quota_exceeded', TEXTS.storageFull, { limit, used: used.storage, added })
}

export const firstAllowance = (
  plan: Pick<PlanRow, 'kind' | 'send_rate_per_second'>,
  now: Date,
): AllowanceValues => {
  const period = calendarMonth(now)
  return {
    period_start: period.start.toISOString(),
    period_end: period.end.toISOString(),
    ...byUse(() => 0),
    storage_used: 0,
    bucket_tokens: computeBurst(planFigures(plan.kind, plan).rate),
    refilled_at: now.toISOString(),
    ...byPlace(() => 0),
  }
}
