/** Queries for the recipients behind a broadcast's stats: emails with their status, and skipped contacts. */
import { sql } from 'slonik'
import { NIL } from 'uuid'
import { type InferType, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { timeOfId } from '../../validation/ids.ts'
import { failures, hasFailed, MAX_FAILURES } from '../emails/failed.sql.ts'
import { CLOCK_AHEAD_MS } from '../emails/id-ranges.ts'
import type { EmailStatus } from '../emails/status.ts'

type Place = { team_id: string; broadcast_id: string }
/** Only contacts after this one, by ID. */
type Page = { after?: string | undefined; limit: number | null }

const reachedRow = row({
  id: string(),
  contact_id: string(),
  email: string(),
  status: string(),
  created_at: string(),
  /** The detail of the latest event. */
  detail: string().nullable(),
})
export type Reached = InferType<typeof reachedRow>

/** The emails to return, by status. `failed` is true for failed emails, and false for others. */
type Outcomes = { statuses: readonly EmailStatus[]; failed?: boolean | undefined }

/**
 * Selects failures that can be of the broadcast's emails. `few` are all of them, unless there are too many to look up
 * each. Clocks of processes can differ.
 */
const withFailures = ({ team_id, broadcast_id }: Place) => sql.fragment`
  with few as materialized (
    select of_id from (${failures({ team_id, from: new Date(timeOfId(broadcast_id) - CLOCK_AHEAD_MS) })}) f
    limit ${MAX_FAILURES + 1}
  ), counted as materialized (
    select count(*) > ${MAX_FAILURES} as are_many from few
  )`

/**
 * Selects a page of a broadcast's emails with these outcomes. A large broadcast can have few failed emails among many
 * queued ones, so their failures come first. If there are many failures, a page of queued emails has enough.
 */
function pageOfOutcomes({ team_id, broadcast_id }: Place, outcomes: Outcomes, { after, limit }: Page) {
  const failed = hasFailed(sql.fragment`m`)
  const own = sql.fragment`team_id = ${team_id} and broadcast_id = ${broadcast_id} and contact_id > ${after ?? NIL}`
  // An index has the contacts of each status in order.
  const ofStatus = (status: EmailStatus) => sql.fragment`(
    select team_id, id, contact_id from email_states m
    where ${allOf(
      sql.fragment`${own} and broadcast_status = ${status}`,
      outcomes.failed === true && sql.fragment`(select are_many from counted) and ${failed}`,
      outcomes.failed === false && sql.fragment`not ${failed}`,
    )}
    order by contact_id limit ${limit})`
  const ofFailures = sql.fragment`(
    select m.* from few cross join lateral (
      select team_id, id, contact_id from email_states m where ${own} and id = of_id and ${failed} offset 0) m
    where not (select are_many from counted)
    order by contact_id limit ${limit})`
  const parts = [...(outcomes.failed ? [ofFailures] : []), ...outcomes.statuses.map(ofStatus)]
  return sql.fragment`
    select * from (${sql.join(parts, sql.fragment` union all `)}) s order by contact_id limit ${limit}`
}

/** Returns the contacts that a broadcast created an email for, by ID. @param outcomes of their emails, or all. */
export async function reachedBy(tx: Tx, place: Place, outcomes: Outcomes | undefined, of: Page) {
  const page =
    outcomes === undefined
      ? sql.fragment`
        select team_id, id, contact_id from accepted_emails
        where team_id = ${place.team_id} and broadcast_id = ${place.broadcast_id} and contact_id > ${of.after ?? NIL}
        order by contact_id limit ${of.limit}`
      : pageOfOutcomes(place, outcomes, of)
  return tx.any(sql.type(reachedRow)`
    ${outcomes?.failed ? withFailures(place) : sql.fragment``}
    select page.id, page.contact_id, e.to_emails[1] as email, e.status, e.created_at, (
      select v.detail from email_events v
      where v.team_id = page.team_id and v.email_id = page.id order by v.occurred_at desc limit 1) as detail
    from (${page}) page
      cross join lateral (select * from emails where team_id = page.team_id and id = page.id offset 0) e
    order by page.contact_id`)
}

const skippedRow = row({
  contact_id: string(),
  email: string(),
  reason: string(),
  detail: string(),
  at: string(),
})
export type Skipped = InferType<typeof skippedRow>

/** Returns the skipped contacts and the reasons, by contact. */
export const skippedBy = (tx: Tx, { team_id, broadcast_id }: Place, { after, limit }: Page) =>
  tx.any(sql.type(skippedRow)`
    select contact_id, email, reason, detail, at from broadcast_skips
    where team_id = ${team_id} and broadcast_id = ${broadcast_id} and contact_id > ${after ?? NIL}
    order by contact_id limit ${limit}`)

/** Returns which of these contacts a broadcast skipped, with the reasons. */
export const skipsOf = (tx: Tx, { team_id, broadcast_id }: Place, contacts: readonly string[]) =>
  tx.any(sql.type(skippedRow)`
    select contact_id, email, reason, detail, at from broadcast_skips
    where team_id = ${team_id} and broadcast_id = ${broadcast_id}
      and contact_id = any(${sql.array(contacts, 'uuid')})`)
