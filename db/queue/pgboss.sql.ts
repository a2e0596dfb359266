/**
 * What our statements assume about pg-boss's tables and results. test/db/queue/pgboss.test.ts checks each assumption.
 * Other code must not rely on undocumented behavior of pg-boss.
 */

import { sql } from 'slonik'
import { array, object, string } from 'yup'

/** Runs text, as pg-boss's own connections do. */
export type Run = (text: string, values?: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>

export const SCHEMA = 'pgboss'

/** A job's states in the order of their type: waiting before `active`, ended after it. */
export const STATES = ['created', 'retry', 'active', 'completed', 'cancelled', 'failed'] as const

const TIME = 'timestamp with time zone'

/** The options of a queue. Each job has its own copy. */
const OF_QUEUE = {
  ...{ policy: 'text', dead_letter: 'text', retry_limit: 'integer', retry_delay: 'integer' },
  ...{ retry_delay_max: 'integer', retry_backoff: 'boolean', expire_seconds: 'integer' },
  ...{ deletion_seconds: 'integer', heartbeat_seconds: 'integer' },
} as const

/**
 * The columns in our statements and their types, by table.
 * - `retry_count` is the number of a job's attempt. Only a claim after the first raises it.
 * - A failed job is retried while `retry_count < retry_limit`. Then a copy is stored in the queue
 * `dead_letter`, with its ID as `source_id` and the output of its last attempt as `source_output`.
 * - Of due jobs that aren't `blocked`, the highest `priority` is fetched first, then the oldest by
 * `created_on`.
 * - A claimed job whose `heartbeat_on` is older than `heartbeat_seconds` counts as lost. A waiting job is
 * deleted at `keep_until`.
 */
export const COLUMNS = {
  job: {
    ...{ id: 'uuid', name: 'text', data: 'jsonb', priority: 'integer', state: `${SCHEMA}.job_state` },
    ...{ blocked: 'boolean', group_id: 'text', output: 'jsonb', source_id: 'uuid', source_output: 'jsonb' },
    ...{ start_after: TIME, started_on: TIME, heartbeat_on: TIME, created_on: TIME, keep_until: TIME },
    retry_count: 'integer',
    ...OF_QUEUE,
  },
  queue: {
    name: 'text',
    /** The table with its jobs. An own table has a name of 57 characters, which leaves 6 for index names. */
    table_name: 'text',
    ...OF_QUEUE,
    retention_seconds: 'integer',
    /** The latest counts. */
    ...{ failed_count: 'integer', total_count: 'integer' },
  },
  /** One row. Until `monitor_backoff_on` no jobs are counted. */
  version: { version: 'integer', monitor_backoff_on: TIME },
} as const

/** The reason of a dead letter: our own, or pg-boss's for a job that was lost with its workers. */
export const deadReason = sql.fragment`
  coalesce(source_output ->> 'reason', source_output #>> '{value,message}', 'no reason is known')`

const touchResponse = object({ settled: array(string().defined()) })

/** Returns the IDs of the jobs that are still ours from the result of `touch`, whose types don't include them. */
export const touchedIds = (response: unknown): Set<string> =>
  new Set(touchResponse.validateSync(response, { strict: true }).settled ?? [])

/** The suffix that pg-boss's loops add to an error message. Without removing it, each loop's error would be logged. */
export const IN_LOOP = ' (Queue: '

/** True if the schema matches this version of pg-boss (its package has the number). */
export async function isMigrated(run: Run, version: number): Promise<boolean> {
  const { rows: made } = await run(`select to_regclass('${SCHEMA}.version') is not null as is_made`)
  if (made[0]?.is_made !== true) return false
  const { rows } = await run(`select version from ${SCHEMA}.version`)
  return rows[0]?.version === version
}
