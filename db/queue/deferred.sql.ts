/** Reads the deferred jobs of a queue. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'
import type { JobName } from './jobs.ts'

const deferredRow = row({
  id: string(),
  team_id: string().nullable(),
  due_at: string(),
  attempts: number(),
  /** Why the last attempt failed, if the job has it. */
  reason: string().nullable(),
})

/** Returns the deferred jobs of a queue that are due first. */
export const deferredJobs = (tx: Tx, job: JobName, most: number) =>
  tx.any(sql.type(deferredRow)`
    select id, data ->> 'team_id' as team_id, start_after as due_at, retry_count as attempts,
      coalesce(output ->> 'reason', output #>> '{value,message}') as reason
    from pgboss.job where name = ${job} and state < 'active' and not blocked and start_after > now()
    order by start_after limit ${most}`)
