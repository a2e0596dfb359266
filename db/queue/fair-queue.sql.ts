/** Queries for the state of a queue's order: pg-boss's rows, and the sequence of positions. */
import { sql } from 'slonik'
import { number } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'
import type { SharedJob } from './jobs.ts'

/** Returns the front of the queue: the priority of the next job. */
export const queueFront = (job: SharedJob) => sql.fragment`
  coalesce((
    select priority from pgboss.job where name = ${job} and state < 'active' and not blocked and start_after <= now()
    order by priority desc, created_on limit 1), 0)`

const lineRow = row({ head: number().nullable(), top: number() })

/** How many jobs at the front are searched for a due one, and how many of those due longest. */
const FRONT_JOBS = 1_000

/**
 * Returns the position of the next job (null: none is due, which an index shows without reading all deferred jobs)
 * and the highest position assigned. Raises the latter to `given`. It is a sequence, so that no one waits for it. A
 * value lost in a race is harmless. Both indexes are forced, because with statistics from when all jobs were
 * deferred, the planner would read and sort everything that became due since.
 * @param group restricts the search to this group.
 */
export async function readQueuePosition(tx: Tx, job: SharedJob, given: number, group: string | null = null) {
  const name = `${job.replaceAll('-', '_')}_places`
  const waiting = sql.fragment`from pgboss.job where name = ${job} and state < 'active' and not blocked`
  const byDue = group === null ? waiting : sql.fragment`${waiting} and group_id = ${group}`
  // The same expression as in the index `lanes` (maintenance.sql.ts).
  const byLane = group === null ? waiting : sql.fragment`${waiting} and group_id || '' = ${group}`
  // Not prepared: a plan made while the queue was empty would read and sort all waiting jobs until autovacuum
  // analyzes the table.
  return tx.one(sql.type(lineRow)`
    select case when (select start_after ${byDue} order by start_after limit 1) <= now() then coalesce(
        (
          select -priority from (
            select priority, start_after ${byLane} order by priority desc, created_on limit ${FRONT_JOBS}) front
          where start_after <= now() order by priority desc limit 1
        ), (
          select min(-priority) from (
            select priority ${byDue} and start_after <= now() order by start_after limit ${FRONT_JOBS}) due
        )) end as head,
      setval(${name}, greatest(last_value, ${given}::bigint)) as top
    from ${sql.identifier([name])}`)
}
