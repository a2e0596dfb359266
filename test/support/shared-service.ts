/**
 * Lets the tests of a file share a service. Each test finds it without rows. Deleting them needs less CPU
 * time than another database with new connections (0.1 s). A test that changes the schema (except the clock)
 * or the plans needs its own service.
 */
import { sql } from 'slonik'
import { array, string } from 'yup'
import { countRow, row } from '../../db/postgres/rows.ts'
import { runClock } from './clock.ts'
import { noteRestOf } from './database.ts'
import { type Service, startService } from './service.ts'
import type { Test } from './tap.ts'
import { until } from './worker.ts'

/** The tables that have rows after a migration. */
const KEPT = ['plans', 'schema_migrations', 'pgboss.queue', 'pgboss.version']
const OURS = sql.fragment`relnamespace in ('public'::regnamespace, 'pgboss'::regnamespace)`
const CLOCK = 'select clock_timestamp()'

/** Counts the tables, indexes, functions and triggers. */
const schemaOf = ({ database }: Service): Promise<number> =>
  database.oneFirst(sql.type(countRow)`
    select (select count(*) from pg_class where ${OURS}) + (select count(*) from pg_proc)
      + (select count(*) from pg_trigger) as count`)

/** Counts the connections of processes, because the last statement of a killed one may still run. */
const processConnections = ({ database }: Service): Promise<number> =>
  database.oneFirst(sql.type(countRow)`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and application_name in ('heliograph web', 'heliograph worker')`)

async function deleteRows({ database, url, deps }: Service): Promise<void> {
  // Counts in memory belong to the last test.
  await deps.fleet.flush()
  await noteRestOf(database, url)
  const { tables } = await database.one(sql.type(row({ tables: array(string()) }))`
    select coalesce(array_agg(oid::regclass::text), '{}') as tables from pg_class
    where ${OURS} and relkind = 'r' and pg_relation_size(oid) > 0`)
  const deletions = tables.filter((table) => !KEPT.includes(table)).map((table) => `delete from ${table};`)
  // Without triggers and foreign keys, so the order is irrelevant.
  const block = ['begin set local session_replication_role = replica;', ...deletions, 'end'].join('\n')
  await database.query(sql.unsafe`do ${sql.literalValue(block)}`)
  const { body } = await database.one(sql.type(row({ body: string() }))`
    select prosrc as body from pg_proc where proname = 'service_time'`)
  if (body !== CLOCK) await runClock(database)
  await deps.fleet.flush()
}

/** Starts a service with the options of `startService`. @returns a function that renews it for the next test. */
export async function shareService(t: Test, options?: Parameters<typeof startService>[1]) {
  const service = await startService(t, options)
  const schema = await schemaOf(service)
  let isUsed = false
  return async () => {
    if (isUsed) {
      await until('its processes have ended', async () => (await processConnections(service)) === 0)
      if ((await schemaOf(service)) !== schema) throw new Error('the last test has changed the schema')
      await deleteRows(service)
    }
    isUsed = true
    return service
  }
}
