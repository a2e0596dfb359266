/**
 * Rows of teams, subscriptions and allowances, and the queries over them.
 * Promises: an allowance row is written whole, and only by who has locked it. Must not know what a figure that
 * nobody has set means (plans/defaults.ts), nor what a period or a bucket is (limits.ts).
 */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'

const teamRow = object({
  id: string().defined(),
  name: string().defined(),
  plan: string().defined(),
  created_at: string().defined(),
})
export type TeamRow = InferType<typeof teamRow>

const accountRow = object({
  plan: string().defined(),
  plan_kind: string().oneOf(['free', 'paid', 'custom']).defined(),
  email_limit: number().defined().nullable(),
  contact_limit: number().defined().nullable(),
  whatsapp_limit: number().defined().nullable(),
  send_rate_per_second: number().defined().nullable(),
  subscription_start: string().defined().nullable(),
  subscription_end: string().defined().nullable(),
  period_start: string().defined(),
  period_end: string().defined(),
  emails_used: number().defined(),
  whatsapp_used: number().defined(),
  contacts_used: number().defined(),
  bucket_tokens: number().defined(),
  refilled_at: string().defined(),
  /** The database's time: no process's clock counts for rate, quota or period. */
  now: string().defined(),
})
export type AccountRow = InferType<typeof accountRow>

// What neither the subscription nor the plan sets is null here: plans/defaults.ts knows what it means.
const accountColumns = sql.fragment`
  p.key as plan, p.kind as plan_kind,
  coalesce(s.email_limit, p.email_limit, case p.kind when 'paid' then (p.tiers -> 0 ->> 'emails')::integer end)
    as email_limit,
  coalesce(s.contact_limit, p.contact_limit) as contact_limit,
  coalesce(s.whatsapp_limit, p.whatsapp_limit) as whatsapp_limit,
  coalesce(s.send_rate_per_second, p.send_rate_per_second) as send_rate_per_second,
  s.period_start as subscription_start, s.period_end as subscription_end,
  a.period_start, a.period_end, a.emails_used, a.whatsapp_used, a.contacts_used, a.bucket_tokens, a.refilled_at,
  service_time() as now`

const accountTables = sql.fragment`
  allowances a join subscriptions s on s.team_id = a.team_id join plans p on p.key = s.plan_key`

/** The team's limits and what it has used, locked until the transaction ends: a team's accepts queue up here. */
export async function lockAccountRow(tx: Tx, teamId: string): Promise<AccountRow> {
  return tx.one(sql.prepared('lock_account', accountRow)`
    select ${accountColumns} from ${accountTables} where a.team_id = ${teamId} for update of a`)
}

/** As `lockAccountRow`, to look at only. */
export async function accountRowOf(tx: Tx, teamId: string): Promise<AccountRow | null> {
  return tx.maybeOne(sql.type(accountRow)`
    select ${accountColumns} from ${accountTables} where a.team_id = ${teamId}`)
}

const timeRow = object({ now: string().defined() })

/** The database's time, where no row is locked that would bring it along. */
export async function serviceTime(tx: Tx): Promise<Date> {
  const { now } = await tx.one(sql.prepared('service_time', timeRow)`select service_time() as now`)
  return new Date(now)
}

export type AllowanceFigures = {
  period_start: Date
  period_end: Date
  emails_used: number
  whatsapp_used: number
  contacts_used: number
  bucket_tokens: number
  refilled_at: Date
}

/** The statement that writes a locked allowance row whole, to stand alone or beside what it pays for. */
export const savingAllowance = (teamId: string, figures: AllowanceFigures) => sql.fragment`
    update allowances set
      period_start = ${sql.timestamp(figures.period_start)}, period_end = ${sql.timestamp(figures.period_end)},
      emails_used = ${figures.emails_used}, whatsapp_used = ${figures.whatsapp_used},
      contacts_used = ${figures.contacts_used}, bucket_tokens = ${figures.bucket_tokens},
      refilled_at = ${sql.timestamp(figures.refilled_at)}
    where team_id = ${teamId}`

/** Writes a locked allowance row whole. */
export async function saveAllowance(tx: Tx, teamId: string, figures: AllowanceFigures): Promise<void> {
  await tx.query(sql.prepared('save_allowance', object())`${savingAllowance(teamId, figures)}`)
}

/** Stores a team with its subscription and its allowance. */
export async function insertTeam(
  tx: Tx,
  team: { id: string; name: string; plan: string },
  figures: AllowanceFigures,
  now: Date,
): Promise<void> {
  await tx.query(sql.unsafe`
    insert into teams (id, name, created_at) values (${team.id}, ${team.name}, ${sql.timestamp(now)})`)
  await tx.query(sql.unsafe`insert into subscriptions (team_id, plan_key) values (${team.id}, ${team.plan})`)
  await tx.query(sql.unsafe`
    insert into allowances (team_id, period_start, period_end, bucket_tokens, refilled_at)
    values (${team.id}, ${sql.timestamp(figures.period_start)}, ${sql.timestamp(figures.period_end)},
      ${figures.bucket_tokens}, ${sql.timestamp(figures.refilled_at)})`)
}

/** The team with the key of its plan, or null without one. */
export async function teamById(tx: Tx, id: string): Promise<TeamRow | null> {
  return tx.maybeOne(sql.type(teamRow)`
    select t.id, t.name, s.plan_key as plan, t.created_at
    from teams t join subscriptions s on s.team_id = t.id where t.id = ${id}`)
}

/** Every team, oldest first. */
export async function allTeams(tx: Tx): Promise<readonly TeamRow[]> {
  return tx.any(sql.type(teamRow)`
    select t.id, t.name, s.plan_key as plan, t.created_at
    from teams t join subscriptions s on s.team_id = t.id order by t.id`)
}

/** What `team plan` changes; an absent figure stays as it is (decisions: team plan). */
export type SubscriptionChange = {
  plan: string
  email_limit?: number
  contact_limit?: number
  whatsapp_limit?: number
  send_rate_per_second?: number
  period?: { start: Date; end: Date }
}

/** Changes what the team is subscribed to. */
export async function updateSubscription(tx: Tx, teamId: string, change: SubscriptionChange): Promise<void> {
  const { period } = change
  await tx.query(sql.unsafe`
    update subscriptions set
      plan_key = ${change.plan},
      email_limit = coalesce(${change.email_limit ?? null}, email_limit),
      contact_limit = coalesce(${change.contact_limit ?? null}, contact_limit),
      whatsapp_limit = coalesce(${change.whatsapp_limit ?? null}, whatsapp_limit),
      send_rate_per_second = coalesce(${change.send_rate_per_second ?? null}, send_rate_per_second),
      period_start = coalesce(${period ? sql.timestamp(period.start) : null}, period_start),
      period_end = coalesce(${period ? sql.timestamp(period.end) : null}, period_end)
    where team_id = ${teamId}`)
}
