/**
 * The border to pg-boss: what our statements take for granted of its tables, and our code of what it answers and says.
 * test/db/queue/pgboss.test.ts holds each against the installed version: what a new version changes fails there first.
 * Beyond what is named here, nothing may rely on what pg-boss does not document.
 */
import { sql } from 'slonik'

/** Runs text, as pg-boss's own connections do. */
export type Run = (text: string, values?: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>

export const SCHEMA = 'pgboss'

/** A job's states, in the order of their type: before `active` it waits, beyond it has ended. */
export const STATES = ['created', 'retry', 'active', 'completed', 'cancelled', 'failed'] as const

/**
 * The columns that statements of ours name, with their types, by table.
 * - `retry_count` is the number of a job's attempt: a claim after the first raises it, nothing else does.
 * - A failed job is tried again while `retry_count < retry_limit`; then it is stored afresh in the queue `dead_letter`,
 *   with its id as `source_id` and what its last attempt said as `source_output`.
 * - Of those that are due, the highest `priority` is fetched first, then the oldest by `created_on`; none that is
 *   `blocked`.
 * - A claimed job whose `heartbeat_on` is `heartbeat_seconds` old counts as lost. One that waits is deleted at
 *   `keep_until`.
 */
export const COLUMNS = {
  job: {
    id: 'uuid',
    name: 'text',
    data: 'jsonb',
    priority: 'integer',
    state: `${SCHEMA}.job_state`,
    blocked: 'boolean',
    group_id: 'text',
    start_after: 'timestamp with time zone',
    started_on: 'timestamp with time zone',
    heartbeat_on: 'timestamp with time zone',
    created_on: 'timestamp with time zone',
    keep_until: 'timestamp with time zone',
    retry_count: 'integer',
    retry_limit: 'integer',
    retry_delay: 'integer',
    retry_delay_max: 'integer',
    retry_backoff: 'boolean',
    expire_seconds: 'integer',
    deletion_seconds: 'integer',
    heartbeat_seconds: 'integer',
    policy: 'text',
    dead_letter: 'text',
    output: 'jsonb',
    source_id: 'uuid',
    source_output: 'jsonb',
  },
  queue: {
    name: 'text',
    /** Of the table that has its jobs: 57 characters for one of its own, so that names of indexes have 6 left. */
    table_name: 'text',
    policy: 'text',
    dead_letter: 'text',
    retry_limit: 'integer',
    retry_delay: 'integer',
    retry_delay_max: 'integer',
    retry_backoff: 'boolean',
    retention_seconds: 'integer',
    expire_seconds: 'integer',
    deletion_seconds: 'integer',
    heartbeat_seconds: 'integer',
    /** Jobs as they were counted last. */
    failed_count: 'integer',
    total_count: 'integer',
  },
  /** One row. Until `monitor_backoff_on` no jobs are counted. */
  version: { version: 'integer', monitor_backoff_on: 'timestamp with time zone' },
} as const

/** Why a dead letter is where it is: our own words, else pg-boss's for a job that was lost with its workers. */
export const deadReason = sql.fragment`
  coalesce(source_output ->> 'reason', source_output #>> '{value,message}', 'no reason is known')`

/** The ids of the jobs that are still ours, of those that `touch` was asked to keep: its types do not say so. */
export const touchedIds = (response: unknown): Set<string> =>
  new Set((response as { settled?: string[] }).settled ?? [])

/** What its loops add to a fault's words: each would be reported by itself. */
export const IN_LOOP = ' (Queue: '

/** Whether its tables are there, as this version of its code (its package says which) has them. */
export async function isMigrated(run: Run, version: number): Promise<boolean> {
  const { rows: made } = await run(`select to_regclass('${SCHEMA}.version') is not null as is_made`)
  if (made[0]?.is_made !== true) return false
  const { rows } = await run(`select version from ${SCHEMA}.version`)
  return rows[0]?.version === version
}
