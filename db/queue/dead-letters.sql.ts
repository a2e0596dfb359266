/**
 * Dead letters: failed jobs, in the queue `<name>-dead` until a redrive or requeue. The row and its original job have
 * the ID `source_id`.
 */

import { type FragmentSqlToken, sql } from 'slonik'
import { array, mixed, number, object, string } from 'yup'
import { allOf } from '../postgres/conditions.ts'
import type { Tx } from '../postgres/pool.ts'
import { countRow, nameRow, row } from '../postgres/rows.ts'
import { wasSeen } from '../postgres/snapshot.sql.ts'
import { keysOf } from '../validation/keys.ts'
import { deadLetterQueue, JOBS, type JobName, type Payload, SCHEDULE_QUEUES } from './jobs.ts'
import { deadReason } from './pgboss.sql.ts'

/** The dead letters of a queue as a relation. `source_id`: the ID of the row. `reason`: from the last attempt. */
export const openDeadLetters = (job: JobName) => sql.fragment`(
  select source_id, data, created_on, source_output ->> 'reason' as reason
  from pgboss.job where name = ${deadLetterQueue(job)} and state < 'active')`

/** True for a row without an unfinished job and without a dead letter. @param id the column of the row's ID. */
export const withoutJob = (job: JobName, id: FragmentSqlToken) => sql.fragment`
  not exists (select from pgboss.job j where j.name = ${job} and j.id = ${id} and j.state <= 'active' offset 0)
  and not exists (
    select from pgboss.job d where d.name = ${deadLetterQueue(job)} and d.source_id = ${id} and d.state <= 'active' offset 0)`

/** The waiting and running jobs between the lowest and the highest ID of a relation. */
export const openJobsWithin = (job: JobName, rows: FragmentSqlToken) => sql.fragment`
  select id from pgboss.job
  where name = ${job} and state <= 'active'
    and id between (select id from ${rows} order by id limit 1) and (select id from ${rows} order by id desc limit 1)`

const KNOWN = [...keysOf(JOBS).flatMap((job) => [job, deadLetterQueue(job)]), ...SCHEDULE_QUEUES]

/**
 * Returns the condition that a row's job or dead letter is in a queue that this version does not have. A newer
 * version then delivers the row (db/README.md, *Upgrading*), and our job would be a second one. The names of such
 * queues are read first, because a subselect would make the planner read all waiting jobs for each row.
 * @param id the row's id, as a column.
 */
export async function isOfNewerQueue(tx: Tx, id: FragmentSqlToken): Promise<FragmentSqlToken> {
  const newer = await tx.anyFirst(sql.type(nameRow)`
    select name from pgboss.queue where name <> all(${sql.array(KNOWN, 'text')})`)
  if (newer.length === 0) return sql.fragment`false`
  return sql.fragment`exists (
    select from pgboss.job n
    where n.name = any(${sql.array(newer, 'text')}) and n.state <= 'active' and (n.id = ${id} or n.source_id = ${id}))`
}

const reasonRow = row({
  reason: string(),
  count: number(),
  /** The number of teams. 0 for a queue without teams. */
  teams: number(),
  first_at: string(),
  last_at: string(),
  /** The row IDs of the newest few: emails, webhook messages, reports. */
  samples: array(string()),
})

/** How many of a reason's dead letters are named. */
const MAX_SAMPLES = 5

/** Counts a queue's dead letters by reason, the most frequent first. */
export const deadReasons = (tx: Tx, job: JobName, limit: number) =>
  tx.any(sql.type(reasonRow)`
    select ${deadReason} as reason, count(*) as count, count(distinct data ->> 'team_id') as teams,
      min(created_on) as first_at, max(created_on) as last_at,
      (array_agg(source_id::text order by created_on desc))[1:${MAX_SAMPLES}] as samples
    from pgboss.job where name = ${deadLetterQueue(job)} and state < 'active'
    group by 1 order by count desc, reason limit ${limit}`)

/** Counts a queue's dead letters. With a reason or `seen`, only those with this reason or in this snapshot. */
export const countDeadLetters = (
  tx: Tx,
  job: JobName,
  { reason = null, seen }: { reason?: string | null; seen?: string } = {},
) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*) as count from pgboss.job j where name = ${deadLetterQueue(job)} and state < 'active'
      and ${allOf(
        reason !== null && sql.fragment`${deadReason} = ${reason}`,
        seen !== undefined && wasSeen(sql.fragment`j`, seen),
      )}`)

const dataRow = row({ data: mixed<object>() })

/**
 * Removes dead letters from their queue, oldest first: all that existed at `seen`, or those with one reason.
 * @returns their payloads.
 */
export async function removeDeadLetters<J extends JobName>(
  tx: Tx,
  job: J,
  { seen, reason, limit }: { seen: string; reason: string | null; limit: number },
): Promise<Payload<J>[]> {
  const payloads = await tx.anyFirst(sql.type(dataRow)`
    delete from pgboss.job where name = ${deadLetterQueue(job)} and id in (
      select id from pgboss.job j
      where name = ${deadLetterQueue(job)} and state < 'active' and ${wasSeen(sql.fragment`j`, seen)}
        and (${reason}::text is null or ${deadReason} = ${reason})
      order by created_on limit ${limit} for update skip locked)
    returning data`)
  return payloads as Payload<J>[]
}

/**
 * Selects the remains of these rows' failed jobs: the dead letters, and for some minutes the original jobs. Each
 * condition names its queues, so that no other queue is scanned. Rows locked by a redrive are skipped.
 */
function leftOf(jobs: readonly JobName[], ids: readonly string[]) {
  const these = sql.array(ids, 'uuid')
  const of = (names: readonly string[], which: FragmentSqlToken) => {
    const own = sql.fragment`name = any(${sql.array(names, 'text')})`
    return sql.fragment`${own} and id in (
      select id from pgboss.job where ${own} and ${which} for update skip locked)`
  }
  return {
    letters: of(jobs.map(deadLetterQueue), sql.fragment`source_id = any(${these}) and state < 'active'`),
    ended: of(jobs, sql.fragment`id = any(${these}) and state > 'active'`),
  }
}

/** Deletes the remains of failed jobs, for rows that were deleted. */
export async function deleteFailedJobs(
  tx: Tx,
  jobs: readonly JobName[],
  ids: readonly string[],
): Promise<void> {
  const { letters, ended } = leftOf(jobs, ids)
  await tx.query(sql.type(object())`
    with letters as (delete from pgboss.job where ${letters})
    delete from pgboss.job where ${ended}`)
}

/** Deletes the failure reasons that match `pattern`. */
export async function deleteReasons(
  tx: Tx,
  jobs: readonly JobName[],
  ids: readonly string[],
  pattern: string,
): Promise<void> {
  const { letters, ended } = leftOf(jobs, ids)
  const says = sql.fragment`lower(concat_ws(' ', output, source_output)) ~ ${pattern}`
  await tx.query(sql.type(object())`
    with letters as (
      update pgboss.job set output = null, source_output = null where ${letters} and ${says})
    update pgboss.job set output = null, source_output = null where ${ended} and ${says}`)
}
