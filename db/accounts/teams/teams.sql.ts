/**
 * Rows of teams, subscriptions and quotas (allowances). All columns of a quota row are written together, under its
 * lock. plans/defaults.ts has the default limits, limits.ts periods and buckets.
 */

import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import { LINES, type LineName } from '../../channels/list.ts'
import type { Tx } from '../../postgres/pool.ts'
import { columnsOf, idRow, row, rowsOf } from '../../postgres/rows.ts'
import { keysOf } from '../../validation/keys.ts'
import type { Period } from '../plans/period.ts'
import { byLimit, byUse, QUOTAS, type QuotaName } from '../plans/quotas.ts'
import { SUPPRESS_TRANSACTIONAL, type SuppressTransactional } from './suppress-transactional.ts'

export const teamRow = row({
  id: string(),
  name: string(),
  plan: string(),
  created_at: string(),
  /** True for a test team: nothing is delivered. It can't change (DECISIONS: Test teams). */
  test: boolean(),
  /** When it was suspended, or null. */
  suspended_at: string().nullable(),
})
export type TeamRow = InferType<typeof teamRow>

const limit = number().nullable()

/** Creates a value for a team's position in each lane, by its column. */
export function byPlace<V>(value: (line: LineName) => V): Record<`${LineName}_place`, V> {
  const values: Partial<Record<`${LineName}_place`, V>> = {}
  for (const line of LINES) values[`${line}_place`] = value(line)
  return values as Record<`${LineName}_place`, V>
}

/** A team's WhatsApp number, if that isn't the default one. */
export type OwnNumber = { phone_number_id: string; account_id: string }

export const accountRow = row({
  team_id: string(),
  plan: string(),
  plan_kind: string().oneOf(['free', 'paid', 'custom']),
  test: boolean(),
  ...byLimit(() => limit),
  send_rate_per_second: number().nullable(),
  storage_gb: number().nullable(),
  subscription_start: string().nullable(),
  subscription_end: string().nullable(),
  period_start: string(),
  period_end: string(),
  ...byUse(() => number()),
  storage_used: number(),
  bucket_tokens: number(),
  refilled_at: string(),
  ...byPlace(() => number()),
  /** The database's time. */
  now: string(),
})
export type AccountRow = InferType<typeof accountRow>

/** `number` is null for the default number and for a test team. */
const whatsappAccountRow = accountRow.concat(row({ number: mixed<OwnNumber>().nullable() }))

/** The columns of an allowance row and their types. */
const ALLOWANCE_COLUMNS = {
  period_start: 'timestamptz',
  period_end: 'timestamptz',
  ...byUse(() => 'int4' as const),
  storage_used: 'int8',
  bucket_tokens: 'float8',
  refilled_at: 'timestamptz',
  ...byPlace(() => 'int8' as const),
} as const

export type AllowanceValues = Record<keyof typeof ALLOWANCE_COLUMNS, number | string>

const allowanceColumns = keysOf(ALLOWANCE_COLUMNS)
const figureNames = columnsOf(allowanceColumns)

/** The limit of a paid plan without its own: the first tier of emails, the catalog's first contact limit. */
const FIRST: Partial<Record<QuotaName, FragmentSqlToken>> = {
  emails: sql.fragment`(p.tiers -> 0 ->> 'emails')::integer`,
  contacts: sql.fragment`(
    select (r.contacts_tiers -> 0 ->> 'contacts')::integer from plans r
    where r.contacts_tiers -> 0 is not null order by r.key <> p.key, r.key limit 1)`,
}

const ownLimits = sql.join(
  QUOTAS.map(({ name, limit }) => {
    const [own, plans] = [sql.identifier(['s', limit]), sql.identifier(['p', limit])]
    const first = FIRST[name]
    const last = first ? sql.fragment`, case p.kind when 'paid' then ${first} end` : sql.fragment``
    return sql.fragment`coalesce(${own}, ${plans}${last}) as ${sql.identifier([limit])}`
  }),
  sql.fragment`, `,
)

// Limits are null if neither the subscription nor the plan has a value. plans/defaults.ts has the defaults.
const columnsWith = (test: FragmentSqlToken) => sql.fragment`
  a.team_id, p.key as plan, p.kind as plan_kind, ${test} as test,
  ${ownLimits},
  coalesce(s.send_rate_per_second, p.send_rate_per_second) as send_rate_per_second,
  coalesce(s.storage_gb, p.storage_gb) as storage_gb,
  s.period_start as subscription_start, s.period_end as subscription_end,
  ${columnsOf(allowanceColumns, 'a')}, service_time() as now`

export const accountColumns = columnsWith(sql.fragment`(select t.test from teams t where t.id = a.team_id)`)

export const accountTables = sql.fragment`
  allowances a join subscriptions s on s.team_id = a.team_id join plans p on p.key = s.plan_key`

/**
 * Returns the rows of locked allowances `a`, with the limits read after the lock, so that a charge that waited for a
 * plan change uses the new ones. Without the LIMIT the planner expects 1,000 rows per call, and JIT compiles the
 * statement when four teams share an accept.
 * @param read the function that reads after the lock, and the columns from it.
 */
const lockedAccounts = (
  locked: FragmentSqlToken,
  { read, columns }: { read: FragmentSqlToken; columns: FragmentSqlToken },
) => sql.fragment`
  with a as materialized (${locked})
  select ${columns}
  from a cross join lateral (select * from ${read}(a.team_id) limit 1) as l
    cross join lateral (select (l.subscription).*) s cross join lateral (select (l.plan).*) p`

const LIMITS = { read: sql.fragment`subscription_now`, columns: accountColumns }
const WITH_NUMBER = {
  read: sql.fragment`whatsapp_account_now`,
  columns: sql.fragment`${columnsWith(sql.fragment`l.test`)}, l.number`,
}

const allowanceOf = (teamId: string) => sql.fragment`
  select * from allowances where team_id = ${teamId} for update`

const freeAllowances = (teamIds: readonly string[]) => sql.fragment`
  select * from allowances where team_id = any(${sql.array(teamIds, 'uuid')})
  order by team_id for update skip locked`

/** Locks a team's account, and returns its limits and usage. Concurrent accepts of a team wait here. */
export const lockAccountRow = (tx: Tx, teamId: string) =>
  tx.one(sql.prepared('lock_account', accountRow)`${lockedAccounts(allowanceOf(teamId), LIMITS)}`)

/** Does the same for several teams in a global order. Skips those that another transaction has locked. */
export const lockFreeAccountRows = (tx: Tx, teamIds: readonly string[]) =>
  tx.any(sql.prepared('lock_free_accounts', accountRow)`${lockedAccounts(freeAllowances(teamIds), LIMITS)}`)

/** Does the same as `lockAccountRow`, and reads the team's WhatsApp number. */
export const lockWhatsappAccountRow = (tx: Tx, teamId: string) =>
  tx.one(sql.prepared('lock_whatsapp_account', whatsappAccountRow)`
    ${lockedAccounts(allowanceOf(teamId), WITH_NUMBER)}`)

/** Does the same as `lockFreeAccountRows`, and reads the teams' WhatsApp numbers. */
export const lockFreeWhatsappAccountRows = (tx: Tx, teamIds: readonly string[]) =>
  tx.any(sql.prepared('lock_free_whatsapp_accounts', whatsappAccountRow)`
    ${lockedAccounts(freeAllowances(teamIds), WITH_NUMBER)}`)

/** Locks the accounts of teams in one order. Skips teams that don't exist. */
export const lockExistingAccounts = (tx: Tx, teamIds: readonly string[]) =>
  tx.query(sql.type(object())`
    select from allowances where team_id = any(${sql.array(teamIds, 'uuid')}) order by team_id for update`)

/** Does the same as `lockAccountRow` without a lock. */
export const readAccountRow = (tx: Tx, teamId: string) =>
  tx.maybeOne(sql.type(accountRow)`
    select ${accountColumns} from ${accountTables} where a.team_id = ${teamId}`)

/** Returns the statement that writes locked allowance rows. It can run separately or as part of another. */
export function savingAllowances(valuesByTeam: ReadonlyMap<string, AllowanceValues>): FragmentSqlToken {
  const items = [...valuesByTeam].map(([team_id, values]) => ({ team_id, ...values }))
  return sql.fragment`
    update allowances a set (${figureNames}) = (select ${columnsOf(allowanceColumns, 'f')})
    from ${rowsOf('f', { team_id: 'uuid', ...ALLOWANCE_COLUMNS }, items)}
    where a.team_id = f.team_id`
}

export const saveAllowance = (tx: Tx, teamId: string, values: AllowanceValues) =>
  tx.query(sql.prepared('save_allowance', object())`${savingAllowances(new Map([[teamId, values]]))}`)

export async function insertTeam(
  tx: Tx,
  team: { id: string; name: string; plan: string; test: boolean },
  values: AllowanceValues,
  now: Date,
): Promise<void> {
  await tx.query(sql.unsafe`
    insert into teams (id, name, created_at, test)
    values (${team.id}, ${team.name}, ${sql.timestamp(now)}, ${team.test})`)
  await tx.query(sql.unsafe`insert into subscriptions (team_id, plan_key) values (${team.id}, ${team.plan})`)
  await tx.query(sql.unsafe`
    insert into allowances (team_id, period_start, period_end, bucket_tokens, refilled_at)
    values (${team.id}, ${values.period_start}, ${values.period_end}, ${values.bucket_tokens}, ${values.refilled_at})`)
}

export const teamById = (tx: Tx, id: string) =>
  tx.maybeOne(sql.type(teamRow)`
    select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at
    from teams t join subscriptions s on s.team_id = t.id where t.id = ${id}`)

export const allTeams = (tx: Tx) =>
  tx.any(sql.type(teamRow)`
    select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at
    from teams t join subscriptions s on s.team_id = t.id order by t.id`)

export const setTeamName = (tx: Tx, id: string, name: string) =>
  tx.query(sql.unsafe`update teams set name = ${name} where id = ${id}`)

const suppressRow = row({ suppress_transactional: string().oneOf(SUPPRESS_TRANSACTIONAL) })

/** Which suppressions stop the team's transactional email. */
export const readSuppressTransactional = (tx: Tx, id: string) =>
  tx.oneFirst(sql.type(suppressRow)`select suppress_transactional from teams where id = ${id}`)

export const setSuppressTransactional = (tx: Tx, id: string, which: SuppressTransactional) =>
  tx.query(sql.unsafe`update teams set suppress_transactional = ${which} where id = ${id}`)

const contactColumnsRow = row({ contact_columns: array().of(string().defined()).nullable() })

/** Returns the properties that the team's list of contacts shows as columns. Null if none were chosen. */
export const readContactColumns = (tx: Tx, id: string) =>
  tx.maybeOneFirst(sql.type(contactColumnsRow)`
    select contact_columns from teams where id = ${id}`)

export const setContactColumns = (tx: Tx, id: string, names: readonly string[] | null) =>
  tx.query(
    sql.unsafe`update teams set contact_columns = ${names && sql.array(names, 'text')} where id = ${id}`,
  )

/** Suspends a team at `at`. If it already is, the time stays. */
export const setSuspended = (tx: Tx, id: string, at: Date) =>
  tx.query(sql.unsafe`
    update teams set suspended_at = coalesce(suspended_at, ${sql.timestamp(at)}) where id = ${id}`)

/** Ends a team's suspension, if it has one. @returns true if it had one. */
export async function setResumed(tx: Tx, id: string): Promise<boolean> {
  const resumed = await tx.any(sql.type(idRow)`
    update teams set suspended_at = null, resumed_at = service_time()
    where id = ${id} and suspended_at is not null returning id`)
  return resumed.length > 0
}

/** True if the team of a message is suspended, so that the message waits. */
export const isSuspended = (teamId: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  exists (select from teams s where s.id = ${teamId} and s.suspended_at is not null)`

/** True if a team `s` isn't suspended, and is a test team or not, as requested. */
export const isSending = ({ test }: { test: boolean }): FragmentSqlToken =>
  sql.fragment`s.suspended_at is null and s.test = ${test}`

/** True if the team of a message was resumed since a time. Its job may have been deleted before. */
export const wasResumedSince = (
  teamId: FragmentSqlToken,
  since: FragmentSqlToken,
): FragmentSqlToken => sql.fragment`
  exists (select from teams s where s.id = ${teamId} and s.resumed_at >= ${since})`

const overridesRow = row({
  ...byLimit(() => limit),
  send_rate_per_second: number().nullable(),
  storage_gb: number().nullable(),
})
export type OverridesRow = InferType<typeof overridesRow>

/** Returns a team's own limits. Null where the plan's apply (DECISIONS: Limits of a team). */
export const readOverrides = (tx: Tx, teamId: string) =>
  tx.one(sql.type(overridesRow)`
    select ${columnsOf(QUOTAS.map(({ limit }) => limit))}, send_rate_per_second, storage_gb
    from subscriptions where team_id = ${teamId}`)

/** Sets a team's plan and own limits. Without `period`, the billing period doesn't change. */
export const updateSubscription = (
  tx: Tx,
  teamId: string,
  { plan, overrides, period }: { plan: string; overrides: OverridesRow; period?: Period | undefined },
) =>
  tx.query(sql.unsafe`
    update subscriptions set
      plan_key = ${plan}, ${sql.join(
        QUOTAS.map(({ limit }) => sql.fragment`${sql.identifier([limit])} = ${overrides[limit]}`),
        sql.fragment`, `,
      )},
      send_rate_per_second = ${overrides.send_rate_per_second},
      storage_gb = ${overrides.storage_gb},
      period_start = coalesce(${period ? sql.timestamp(period.start) : null}, period_start),
      period_end = coalesce(${period ? sql.timestamp(period.end) : null}, period_end)
    where team_id = ${teamId}`)
