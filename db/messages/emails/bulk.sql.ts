/** Queries for changing all emails that match a filter: IDs in batches, and counts. */
import { sql } from 'slonik'
import { boolean, number, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import { wasSeen } from '../../postgres/snapshot.sql.ts'
import { firstIdAt } from '../../validation/ids.ts'
import { hasFailed } from './failed.sql.ts'
import {
  type EmailCriteria,
  type EmailPage,
  fitsCriteria,
  isBefore,
  keysOfPage,
  sourceOf,
} from './search.sql.ts'

const fits = (teamId: string, criteria: EmailCriteria) => fitsCriteria(criteria, sql.fragment`${teamId}`)

/**
 * Selects a page of the IDs of a team's matching emails, newest first. Waiting emails are found by their states, failed
 * ones through their failures.
 */
function idsOfPage(teamId: string, criteria: EmailCriteria, page: EmailPage) {
  const wanted = { ...criteria, team_id: teamId }
  const keys = keysOfPage(wanted, page)
  if (keys) return sql.fragment`select of_id as id from (${keys}) w`
  const all = { rows: sql.fragment`emails e`, order: sql.fragment`e.id` }
  const { rows, order } = criteria.failed ? sourceOf(wanted, page) : all
  return sql.fragment`
    select e.id from ${rows}
    where e.team_id = ${teamId} and ${fits(teamId, criteria)} and ${isBefore(page.before)}
    order by ${order} desc limit ${page.limit}`
}

export const idsMatching = (tx: Tx, teamId: string, criteria: EmailCriteria, page: EmailPage) =>
  tx.anyFirst(sql.type(idRow)`
    select id from (${idsOfPage(teamId, criteria, page)}) found order by id desc`)

/**
 * Returns the IDs of emails whose `part` hasn't changed since `seen`, which is their state or their accepted content.
 * `failure` is the state of emails that had already failed, because a failure only changes the timeline.
 */
export async function idsAsSeen(
  tx: Tx,
  teamId: string,
  ids: readonly string[],
  { seen, part }: { seen: string; part: 'accepted' | 'state' | 'failure' },
): Promise<readonly string[]> {
  const table = part === 'accepted' ? sql.fragment`accepted_emails` : sql.fragment`email_states`
  const e = sql.fragment`e`
  return tx.anyFirst(sql.type(idRow)`
    select e.id from ${table} e
    where e.team_id = ${teamId} and e.id = any(${sql.array(ids, 'uuid')})
      and ${allOf(wasSeen(e, seen), part === 'failure' && hasFailed(e, seen))}
    order by e.id desc`)
}

/** Returns the IDs of matching emails that no provider has accepted, including rejected ones. */
export const idsToRequeue = (tx: Tx, teamId: string, criteria: EmailCriteria) =>
  tx.anyFirst(sql.type(idRow)`
    select e.id from emails e where e.team_id = ${teamId} and ${fits(teamId, criteria)}
      and (e.unfinished or e.status = 'bounced' and e.provider_message_id is null)`)

const waitingRow = idRow.concat(row({ fits: boolean(), waits: boolean() }))

/**
 * Returns a batch of a team's emails that no provider has accepted, newest first, after an ID. Each says whether it
 * matches, and whether it waits or was rejected. The emails are spread over two indexes.
 */
export async function waitingEmails(
  tx: Tx,
  teamId: string,
  { from, between, ...criteria }: EmailCriteria,
  { before, limit }: EmailPage,
) {
  const part = allOf(
    sql.fragment`team_id = ${teamId}`,
    from && sql.fragment`id >= ${firstIdAt(from)}`,
    between && sql.fragment`id between ${between.oldest} and ${between.newest}`,
    before !== undefined && sql.fragment`id < ${before}`,
  )
  return tx.any(sql.type(waitingRow)`
    select w.id, e.id is not null as fits, coalesce(e.unfinished, false) as waits from (
      select id from (
        (select id from email_states where ${part} and unfinished order by id desc limit ${limit})
        union
        (select id from email_states where ${part} and rare_status = 'bounced' and provider_message_id is null
          order by id desc limit ${limit})) never_accepted
      order by id desc limit ${limit}) w
    left join lateral (
      select e.id, e.unfinished from emails e where e.team_id = ${teamId} and e.id = w.id and ${fits(teamId, criteria)} offset 0) e on true
    order by w.id desc`)
}

const matchingRow = row({ count: number(), newest: string().nullable(), oldest: string().nullable() })

/** Counts a team's newest matching emails, at most `most`, and returns the first and last of these. */
export const countMatching = (tx: Tx, teamId: string, criteria: EmailCriteria, most: number) =>
  tx.one(sql.type(matchingRow)`
    select count(*) as count, max(id::text) as newest, min(id::text) as oldest
    from (${idsOfPage(teamId, criteria, { limit: most })}) found`)
