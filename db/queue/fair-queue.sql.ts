/** What a queue's line looks like: pg-boss's rows and the sequence of places, as far as fair-queue.ts needs them. */
import { sql } from 'slonik'
import { number } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'
import type { SharedJob } from './jobs.ts'

/** Where the queue's line begins, as a priority: that of the job which goes next. */
export const frontOf = (job: SharedJob) => sql.fragment`
  coalesce((
    select priority from pgboss.job where name = ${job} and state < 'active' and not blocked and start_after <= now()
    order by priority desc, created_on limit 1), 0)`

const lineRow = row({ head: number().nullable(), top: number() })

/** How many jobs of the front are looked through for one that is due, and of those that are due for longest. */
const FRONT_JOBS = 1_000

/**
 * The place of the job that goes next (null: none is due, which another index shows without reading all that is put
 * off), and the highest place that was given; raises the latter to `given`. It is a sequence, so that nobody waits for
 * it; a place that is lost in a race costs nothing. Behind very many that are put off it is the lowest place of those
 * that are due for longest. Neither index is left to the planner: by what it knew when all was put off, it would read
 * and sort all that became due since. @param group looks at the line of this group alone.
 */
export async function lookAtLine(tx: Tx, job: SharedJob, given: number, group: string | null = null) {
  const name = `${job.replaceAll('-', '_')}_places`
  const inGroup = group === null ? sql.fragment`` : sql.fragment` and group_id = ${group}`
  const waiting = sql.fragment`from pgboss.job where name = ${job} and state < 'active' and not blocked${inGroup}`
  // Not prepared: a plan that was made while the queue was empty reads and sorts all that waits, until autovacuum has
  // analyzed the table again.
  return tx.one(sql.type(lineRow)`
    select case when (select start_after ${waiting} order by start_after limit 1) <= now() then coalesce(
        (
          select -priority from (
            select priority, start_after ${waiting} order by priority desc, created_on limit ${FRONT_JOBS}) front
          where start_after <= now() order by priority desc limit 1
        ), (
          select min(-priority) from (
            select priority ${waiting} and start_after <= now() order by start_after limit ${FRONT_JOBS}) due
        )) end as head,
      setval(${name}, greatest(last_value, ${given}::bigint)) as top
    from ${sql.identifier([name])}`)
}
