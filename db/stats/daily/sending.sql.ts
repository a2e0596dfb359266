/**
 * Stats of all email of a team by the time it was sent: emails that the relay accepted or rejected, hard bounces,
 * complaints, and emails that weren't sent to a suppressed recipient. Deltas that aren't folded yet don't count.
 */

import { sql } from 'slonik'
import { type InferType, number, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import { keysOf } from '../../validation/keys.ts'

const SENDING = sql.fragment`'sending'`

const counts = { sent: number(), hard_bounced: number(), complained: number() }
const dayRow = row({ team_id: string(), ...counts })
export type SendingOfTeam = InferType<typeof dayRow>

const sumOf = (status: string) => sql.fragment`
  coalesce(sum(f.count) filter (where f.status = ${status}), 0)::integer as ${sql.identifier([status])}`
const sums = sql.fragment`${sumOf('sent')}, ${sumOf('hard_bounced')}, ${sumOf('complained')}`

/**
 * Returns live teams that sent at least this many emails in the last 24 hours (in full hours) and since their last
 * resume.
 */
export const sendingOfLastDay = (tx: Tx, least: number) =>
  tx.any(sql.type(dayRow)`
    select f.team_id, ${sums}
    from hourly_figures f join teams t on t.id = f.team_id
    where f.channel = ${SENDING} and f.hour >= service_time() - interval '24 hours'
      and f.hour >= coalesce(t.reputation_from, '-infinity') and not t.test
    group by f.team_id
    having sum(f.count) filter (where f.status = 'sent') >= ${least}`)

/** The number of days behind the rates on a page. */
const WEEK_DAYS = 7
/** Selects the stats `f` of the last seven days, including today. */
const inWeek = sql.fragment`
  f.channel = ${SENDING} and f.day > (service_time() at time zone 'UTC')::date - ${WEEK_DAYS}::int`

const SORTS = {
  worst: sql.fragment`greatest(bounce_share, complaint_share)`,
  bounces: sql.fragment`bounce_share`,
  complaints: sql.fragment`complaint_share`,
  newest: sql.fragment`0`,
}
/** The sort orders of teams, highest first: the higher of both rates, one of them, or the creation time. */
export const TEAM_SORTS = keysOf(SORTS)
type TeamPage = {
  name?: string | undefined
  plan?: string | undefined
  sort: (typeof TEAM_SORTS)[number]
  after: string | undefined
  limit: number
}

/**
 * Returns a page of IDs of teams whose names contain `name`, by their rates over the last seven days, after `after`.
 * @param plan the key of their plan.
 */
export async function teamsByShare(tx: Tx, { name = '', plan, sort, after, limit }: TeamPage) {
  const beyond =
    after === undefined
      ? sql.fragment`true`
      : sql.fragment`(rank, id) < (select rank, id from ranked where id = ${after})`
  const onPlan = allOf(
    plan !== undefined &&
      sql.fragment`exists (select from subscriptions s where s.team_id = t.id and s.plan_key = ${plan})`,
  )
  return tx.anyFirst(sql.type(idRow)`
    with week as (
      select f.team_id, sum(f.count) filter (where f.status = 'hard_bounced')::float8 as bounced,
        sum(f.count) filter (where f.status = 'complained')::float8 as complained,
        nullif(sum(f.count) filter (where f.status = 'sent'), 0) as sent
      from daily_figures f where ${inWeek} group by f.team_id
    ), shares as (
      select t.id, t.name, coalesce(w.bounced / w.sent, 0) as bounce_share,
        coalesce(w.complained / w.sent, 0) as complaint_share
      from teams t left join week w on w.team_id = t.id
      where ${onPlan}
    ), ranked as (select id, name, ${SORTS[sort]}::float8 as rank from shares)
    select id from ranked where strpos(lower(name), lower(${name})) > 0 and ${beyond}
    order by rank desc, id desc limit ${limit}`)
}

const weekRow = row({ team_id: string(), ...counts, suppressed: number() })
export type SendingOfWeek = InferType<typeof weekRow>

/** Returns what these teams sent in the last seven days, including today. */
export async function sendingOfWeek(tx: Tx, teamIds: readonly string[]) {
  const rows = await tx.any(sql.type(weekRow)`
    select f.team_id, ${sums}, ${sumOf('suppressed')}
    from daily_figures f where f.team_id = any(${sql.array(teamIds, 'uuid')}) and ${inWeek}
    group by f.team_id`)
  return new Map(rows.map((one) => [one.team_id, one]))
}

const overRow = dayRow.concat(row({ name: string() }))

/**
 * Returns live teams with rates above these limits in the last seven days, at least `least` sent emails, and the
 * highest rates first.
 */
export const teamsOverLimits = (
  tx: Tx,
  { bounced, complained, least, most }: { bounced: number; complained: number; least: number; most: number },
) =>
  tx.any(sql.type(overRow)`
    with week as (select f.team_id, ${sums} from daily_figures f where ${inWeek} group by f.team_id)
    select w.*, t.name from week w join teams t on t.id = w.team_id
    where not t.test and w.sent >= ${least}
      and (w.hard_bounced > w.sent * ${bounced}::float8 or w.complained > w.sent * ${complained}::float8)
    order by greatest(w.hard_bounced, w.complained)::float8 / w.sent desc, w.team_id limit ${most}`)
