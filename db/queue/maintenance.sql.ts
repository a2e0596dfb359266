/**
 * Statements that keep pg-boss's maintenance cheap with millions of waiting jobs: indexes on its tables, and longer
 * intervals between its full counts. As text, for its own connections.
 */

import type { Run } from './pgboss.sql.ts'

/** Short suffixes, because pg-boss's table names have 57 of the 63 characters that a name can have. */
const INDEXES = {
  // Every two seconds each worker looks for active jobs that have expired or whose worker is silent.
  busy: `(name) where state = 'active'`,
  // Finds whether anything is due. pg-boss's own index would be scanned completely when all jobs are
  // deferred.
  due: `(name, start_after) where state < 'active' and not blocked`,
  // Finds a row's dead letter. Its two columns make the planner prefer it, even before the first analyze, to
  // pg-boss's indexes by name, which read all dead letters of the queue.
  dlq: '(name, source_id) where source_id is not null',
}

/** Additional indexes for claims by group (group-claims.sql.ts): to find groups, and for the order in each. */
const GROUP = { group: `(name, group_id, start_after) where state < 'active' and not blocked` }
const BY_GROUP = {
  due: GROUP,
  place: {
    ...GROUP,
    // An expression, so that the planner can't use `group` instead, and sort all jobs of the group, before the
    // table is analyzed.
    lanes: `(name, (group_id || ''), priority desc, created_on) where state < 'active' and not blocked`,
  },
}

/**
 * Creates the indexes on all job tables without blocking inserts. Invalid ones are created again.
 * @param byGroup queues that are claimed by group. Each has its own table.
 */
export async function indexJobs(
  run: Run,
  byGroup: ReadonlyMap<string, keyof typeof BY_GROUP>,
): Promise<void> {
  const { rows: tables } = await run(
    'select table_name, min(name) filter (where name = any($1)) as grouped from pgboss.queue group by 1 order by 1',
    [[...byGroup.keys()]],
  )
  const { rows: built } = await run(`
    select c.relname, i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'pgboss'::regnamespace`)
  const valid = new Map(built.map(({ relname, indisvalid }) => [String(relname), indisvalid === true]))
  for (const { table_name, grouped } of tables) {
    const order = byGroup.get(String(grouped))
    for (const [suffix, definition] of Object.entries({ ...INDEXES, ...(order ? BY_GROUP[order] : {}) })) {
      const name = `${table_name}_${suffix}`
      if (valid.get(name) === true) continue
      await run(`drop index concurrently if exists pgboss.${name}`)
      await run(`create index concurrently ${name} on pgboss.${table_name} ${definition}`)
    }
  }
}

/** From this many jobs on, counts are spread out, to this many counted jobs per second on average. */
const MANY_JOBS = 10_000
const PER_SECOND = 5_000
const MAX_COUNT_INTERVAL_S = 60

/** Delays pg-boss's next count in proportion to the last one, because it reads every stored job. */
export const spreadCounts = async (run: Run): Promise<void> =>
  void (await run(
    `update pgboss.version set monitor_backoff_on =
      now() + least(${MAX_COUNT_INTERVAL_S}, counted.jobs / ${PER_SECOND}) * interval '1 second'
    from (select sum(total_count) as jobs from pgboss.queue) counted
    where counted.jobs > ${MANY_JOBS} and coalesce(monitor_backoff_on, '-infinity') < now()`,
  ))

/** Returns which of these queues have a job that is due. It reads one job of each. */
export async function queuesDue(run: Run, jobs: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await run(
    `select name from unnest($1::text[]) asked (name)
    where (
      select start_after <= now() from pgboss.job j
      where j.name = asked.name and state < 'active' and not blocked order by start_after limit 1)`,
    [jobs],
  )
  return new Set(rows.map(({ name }) => String(name)))
}

/** True if an active job has expired or its worker has no heartbeat. pg-boss's supervision would end it. */
export async function isAnyLost(run: Run): Promise<boolean> {
  // Not by queue, because PostgreSQL 15 would search each index once per queue.
  const { rows } = await run(`
    select bool_or(started_on + expire_seconds * interval '1 second' < now()
      or heartbeat_on + heartbeat_seconds * interval '1 second' < now()) as lost
    from pgboss.job where state = 'active'`)
  return rows[0]?.lost === true
}
