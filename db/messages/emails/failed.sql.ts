/**
 * Finds failed emails. They were never sent and have no attempts left, or have expired. Their status stays `queued`,
 * but the failures in timelines have an index. An email that was requeued since its failure hasn't failed.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { boolean, number } from 'yup'
import { EMAIL } from '../../channels/email.sql.ts'
import { gaveUp } from '../../delivery/requeue.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { firstIdAt } from '../../validation/ids.ts'

/** Maximum number of failures that are each looked up. */
export const MAX_FAILURES = 5_000

/** A part of a list. IDs follow `before`, are accepted in a time range, and are between two others. */
export type ListRange = {
  before?: string | undefined
  from?: Date | undefined
  /** Accepted before this time. */
  to?: Date | undefined
  /** Between these two IDs, including both. */
  between?: { newest: string; oldest: string } | undefined
}

/** Returns the conditions on the IDs in such a part. */
export const rangeConditions = (id: FragmentSqlToken, { before, from, to, between }: ListRange) => [
  before !== undefined && sql.fragment`${id} < ${before}`,
  from !== undefined && sql.fragment`${id} >= ${firstIdAt(from)}`,
  to !== undefined && sql.fragment`${id} < ${firstIdAt(to)}`,
  between && sql.fragment`${id} between ${between.oldest} and ${between.newest}`,
]

/**
 * True if an email has failed. With `is true`, the planner can't make it a join that reads all failures for one page.
 * @param seen a snapshot in which it had failed, if its state hasn't changed since.
 */
export const hasFailed = (email: FragmentSqlToken, seen?: string): FragmentSqlToken => sql.fragment`
  ((${email}.status = 'queued' and ${email}.provider_message_id is null and ${gaveUp(EMAIL, email, seen)}) is true)`

type Failures = ListRange & { team_id: string }

/** Selects the emails of a team's failures in list order, whether or not they were requeued since. */
export const failures = ({ team_id: team, ...range }: Failures): FragmentSqlToken => sql.fragment`
  select distinct team_id as of_team, email_id as of_id from email_events
  where ${allOf(
    sql.fragment`team_id = ${team} and kind = 'gave_up'`,
    ...rangeConditions(sql.fragment`email_id`, range),
  )}
  order by email_id desc`

const failedState = (...conditions: (FragmentSqlToken | false)[]): FragmentSqlToken => sql.fragment`
  lateral (
    select m.id from email_states m
    where m.team_id = of_team and m.id = of_id and ${allOf(hasFailed(sql.fragment`m`), ...conditions)} offset 0) s`

/** Selects the keys of a team's failed emails in list order. */
export const failedInOrder = ({
  in_broadcast,
  broadcast_id,
  whose,
  ...scope
}: Failures & {
  in_broadcast?: boolean | undefined
  broadcast_id?: string | undefined
  whose?: 'all' | undefined
}): FragmentSqlToken =>
  sql.fragment`
    select of_team, of_id from (${failures(scope)}) f
      cross join ${failedState(
        whose !== 'all' && EMAIL.customers,
        in_broadcast === true && sql.fragment`broadcast_id is not null`,
        in_broadcast === false && sql.fragment`broadcast_id is null`,
        broadcast_id !== undefined && sql.fragment`broadcast_id = ${broadcast_id}`,
      )}
    order by of_id desc`

const countRow = row({ looked: number(), failed: number(), is_counted: boolean() })

/**
 * Counts a team's failed emails accepted since `from`, optionally only of one broadcast. Null if more than `most` had a
 * failure, or if the team has broadcasts and `apart` is true.
 */
export async function countFailed(
  tx: Tx,
  teamId: string,
  {
    from,
    most,
    apart = false,
    broadcast_id,
  }: { from: Date; most: number; apart?: boolean; broadcast_id?: string },
): Promise<number | null> {
  const { looked, failed, is_counted } = await tx.one(sql.type(countRow)`
    with counted as materialized (
      select not (${apart} and exists (select from broadcasts where team_id = ${teamId})) as yes
    )
    select count(*) as looked, count(s.id) as failed, (select yes from counted) as is_counted
    from (
      ${failures({ team_id: teamId, from })} limit (select case when yes then ${most + 1}::int else 0 end from counted)) f
      left join ${failedState(
        EMAIL.customers,
        broadcast_id !== undefined && sql.fragment`broadcast_id = ${broadcast_id}`,
      )} on true`)
  return is_counted && looked <= most ? failed : null
}
