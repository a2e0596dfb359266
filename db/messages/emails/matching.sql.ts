/** The queries behind changing all emails that match a filter: ids in lots, how many there are, their deletion. */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { EMAIL } from '../../channels/email.sql.ts'
import { appendMoves, appendSkips, movedColumns } from '../../figures/daily/moved.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { type EmailCriteria, fitsCriteria, isBefore, type Page } from './find.sql.ts'

const idRow = object({ id: string().defined() })

const fits = (teamId: string, criteria: EmailCriteria) => fitsCriteria(criteria, sql.fragment`${teamId}`)

/** The ids of a team's emails that fit, newest first. */
export async function idsMatching(
  tx: Tx,
  teamId: string,
  criteria: EmailCriteria,
  { before, limit }: Page,
): Promise<readonly string[]> {
  const rows = await tx.any(sql.type(idRow)`
    select e.id from emails e where e.team_id = ${teamId} and ${fits(teamId, criteria)} and ${isBefore(before)}
    order by e.id desc limit ${limit}`)
  return rows.map(({ id }) => id)
}

/** The ids of a team's emails that fit and that no provider has taken; with `force` those too that were refused. */
export async function idsToRequeue(
  tx: Tx,
  teamId: string,
  criteria: EmailCriteria,
  force: boolean,
): Promise<readonly string[]> {
  const ways = force
    ? sql.fragment`(e.unfinished or e.status = 'bounced' and e.provider_message_id is null)`
    : sql.fragment`e.unfinished`
  const rows = await tx.any(sql.type(idRow)`
    select e.id from emails e where e.team_id = ${teamId} and ${fits(teamId, criteria)} and ${ways}`)
  return rows.map(({ id }) => id)
}

const countRow = object({
  count: number().defined(),
  newest: string().defined().nullable(),
  oldest: string().defined().nullable(),
})

/** How many of a team's emails fit, the newest `most` of them, and which are the first and the last of these. */
export async function countMatching(tx: Tx, teamId: string, criteria: EmailCriteria, most: number) {
  return tx.one(sql.type(countRow)`
    select count(*) as count, max(id::text) as newest, min(id::text) as oldest from (
      select e.id from emails e where e.team_id = ${teamId} and ${fits(teamId, criteria)}
      order by e.id desc limit ${most}) found`)
}

const deletedRow = object({ created_at: string().defined() })

/**
 * Deletes emails with their events: their states first, by id as everywhere. A transaction that records events has them
 * locked, and what it stores is seen by the statement after. A contact who had one of a broadcast stands in its list of
 * skipped contacts from then on, so that no second walk sends to that person again. @returns when each was created.
 */
export async function deleteEmailRows(tx: Tx, teamId: string, ids: readonly string[]) {
  const these = sql.array(ids, 'uuid')
  const deleted = await tx.any(sql.type(deletedRow)`
    with held as materialized (
      select id from email_states where team_id = ${teamId} and id = any(${these}) order by id for update
    ), deleted as (
      delete from email_states e where e.team_id = ${teamId} and e.id in (select id from held)
      returning e.id, ${movedColumns(EMAIL, sql.fragment`e`, { was: sql.fragment`e.status`, became: null })}
    ), gone as (
      delete from accepted_emails e where e.team_id = ${teamId} and e.id in (select id from deleted)
      returning e.team_id, e.broadcast_id, e.contact_id, e.to_emails[1] as email, e.person
    ), moved as (${appendMoves(EMAIL, sql.fragment`deleted`)}
    ), skipped as (
      insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at, person)
      select team_id, broadcast_id, contact_id, email, 'deleted', 'its email was deleted', service_time(), person from gone
      where broadcast_id is not null and contact_id is not null
      on conflict do nothing
      returning team_id, broadcast_id, 1 as n
    ), moved_skips as (${appendSkips(sql.fragment`skipped`)})
    select created_at from deleted`)
  await tx.query(sql.unsafe`
    delete from email_events where team_id = ${teamId} and email_id = any(${these})`)
  return deleted
}
