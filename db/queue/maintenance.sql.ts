/**
 * Statements that keep pg-boss's upkeep cheap when millions wait, as text for its own connections: indexes on its
 * tables, made where its tables are made, and longer pauses between its counts of whole tables.
 */

import type { Run } from './pgboss.sql.ts'

/** By the end of its name, which is short: pg-boss's tables have names of 57 characters, of 63 that a name may have. */
const INDEXES = {
  // Every two seconds each worker looks for active jobs that have expired or whose worker is silent.
  busy: `(name) where state = 'active'`,
  // Whether anything is due at all: pg-boss's own index would be walked to its end when all is put off.
  due: `(name, start_after) where state < 'active' and not blocked`,
  // A row's dead letter is found by it.
  dead: '(source_id) where source_id is not null',
}

/** Beside those, where jobs are claimed by their groups (group-claims.sql.ts): to find groups, and each one's order. */
const GROUP = { group: `(name, group_id, start_after) where state < 'active' and not blocked` }
const BY_GROUP = {
  due: GROUP,
  place: {
    ...GROUP,
    place: `(name, group_id, priority desc, created_on) where state < 'active' and not blocked`,
  },
}

/**
 * Makes them on every table of jobs, while jobs are stored. One that was left half-built is made again.
 * @param byGroup the queues whose jobs are claimed by their groups: each has a table of its own.
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

/** From how many jobs on their counting is spread out, and how many are counted per second then, on average. */
const MANY_JOBS = 10_000
const PER_SECOND = 5_000
const MAX_COUNT_INTERVAL_S = 60

/** Puts off pg-boss's next count by the time that the last one is worth: it reads every stored job. */
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

/** Whether an active job has expired or its worker is silent: what pg-boss's supervision would end. */
export async function isAnyLost(run: Run): Promise<boolean> {
  const { rows } = await run(`
    select from pgboss.job
    where name = any(array(select name from pgboss.queue)) and state = 'active'
      and (started_on + expire_seconds * interval '1 second' < now()
        or heartbeat_on + heartbeat_seconds * interval '1 second' < now())
    limit 1`)
  return rows.length > 0
}
