/**
 * Clones test databases from a template that test/run.ts has migrated once. Every name has the run's prefix,
 * so several runs can share a server and each drops only its own.
 */
import { randomBytes } from 'node:crypto'
import { access, constants } from 'node:fs/promises'
import { Client, Pool } from 'pg'
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import { kept } from '../../db/dev/process.ts'
import type { Database } from '../../db/postgres/pool.ts'
import { type Canary, canary } from './canary.ts'

/**
 * The server of the tests' databases: the URL of an admin connection, the prefix of this run's names, and the
 * socket file of our server (database-socket.ts).
 */
export type TestServer = { url: string; prefix: string; socket?: string }

const NAME = 'heliograph tests'

/** The lines of pg_hba.conf. */
const LOGINS = ['host all all 127.0.0.1/32 password', 'local all all password']

/** The longest path of a socket file in Linux, in bytes. */
const LONGEST_SOCKET = 107

// PostgreSQL's object_in_use. Something still uses the template, for example autovacuum.
const IN_USE = '55006'

/** Returns the server's URL with another database. */
export function databaseUrl(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = `/${encodeURIComponent(database)}`
  return url.href
}

/**
 * One connection to each server, kept between statements, because a process creates and drops tens of
 * databases.
 */
const pools = new Map<string, Pool>()

function poolOf(url: string): Pool {
  const known = pools.get(url)
  if (known) return known
  const pool = new Pool({ connectionString: url, application_name: NAME, max: 1, allowExitOnIdle: true })
  // The server may stop while the pool is idle.
  pool.on('error', () => {})
  pools.set(url, pool)
  return pool
}

async function execute(url: string, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await poolOf(url).query(statement)
}

/**
 * Makes logins cheap, because tests log in thousands of times. One message with the plain password replaces
 * SCRAM's four, and one round of hashing replaces 4,096 (RFC 7677 §4). Only for the run's own server, and
 * only from this machine.
 */
export async function hurryLogins(url: string): Promise<void> {
  const { password } = new URL(url)
  await execute(url, [
    'set scram_iterations = 1',
    `alter role current_user password '${password}'`,
    `do $$ begin execute format('copy (select unnest(%L::text[])) to %L', '{${LOGINS.join()}}', current_setting('hba_file')); end $$`,
    'select pg_reload_conf()',
  ])
}

/** Returns the socket file of our server, unless its path is too long or this user can't use it. */
export async function socketOf(url: string): Promise<{ socket?: string }> {
  const { rows } = await poolOf(url).query<{ path: string }>(
    `select format('%s/.s.PGSQL.%s', current_setting('data_directory'), current_setting('port')) as path`,
  )
  const { path } = rows[0] as { path: string }
  const isUsable = await access(path, constants.W_OK).then(...kept)
  return isUsable && Buffer.byteLength(path) <= LONGEST_SOCKET ? { socket: path } : {}
}

/**
 * Prevents pg-boss from deleting old jobs for a day. That would be two hundred statements after each start of
 * a worker. It still finds lost jobs.
 */
async function skipMaintenance(template: string): Promise<void> {
  const client = new Client({ connectionString: template, application_name: NAME })
  await client.connect()
  try {
    await client.query(`update pgboss.queue set maintain_on = now() + interval '1 day'`)
  } finally {
    await client.end()
  }
}

/** Makes the template that this run's databases are cloned from. `migrate` must leave no connection to it. */
export async function createTemplate({ url, prefix }: TestServer, migrate: (url: string) => Promise<void>) {
  const template = `${prefix}_template`
  await execute(url, [`create database "${template}" template template0 encoding 'UTF8'`])
  await migrate(databaseUrl(url, template))
  await skipMaintenance(databaseUrl(url, template))
  await execute(url, [`alter database "${template}" allow_connections false`])
}

/** Drops every database of the run, even while clients are connected. */
export async function dropDatabases({ url, prefix }: TestServer): Promise<void> {
  const client = new Client({ connectionString: url, application_name: NAME })
  await client.connect()
  try {
    const { rows } = await client.query<{ datname: string }>(
      'select datname from pg_database where starts_with(datname, $1)',
      [`${prefix}_`],
    )
    for (const { datname } of rows) await client.query(`drop database if exists "${datname}" with (force)`)
  } finally {
    await client.end()
  }
}

/** Returns the server that test/run.ts has prepared. @throws Error if the test runs without it. */
export function testServer(): TestServer {
  const { DATABASE_URL: url, TEST_DATABASE_PREFIX: prefix } = process.env
  if (url && prefix) return { url, prefix }
  throw new Error(
    `this test needs the database that test/run.ts provides: npm test -- ${process.argv[1] ?? 'FILE'}`,
  )
}

/** Creates an empty database, which is dropped when the test ends. */
export async function emptyDatabase(t: { teardown(drop: () => Promise<void>): unknown }) {
  const { url, prefix } = testServer()
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  t.teardown(() => execute(url, [`drop database if exists "${name}" with (force)`]))
  await execute(url, [`create database "${name}" template template0 encoding 'UTF8'`])
  return { url: databaseUrl(url, name) }
}

/** True if the server compiles statements (JIT), by its URL. */
const compiling = new Map<string, Promise<boolean>>()

async function canCompile(url: string): Promise<boolean> {
  const { rows } = await poolOf(url).query<{ jit: boolean }>('select pg_jit_available() as jit')
  return rows[0]?.jit === true
}

/** Repeats the migration's setting for the role, because a clone doesn't copy settings of roles. */
async function turnOffJit(url: string, name: string): Promise<void> {
  if (!compiling.has(url)) compiling.set(url, canCompile(url))
  if (await compiling.get(url))
    await execute(url, [`alter role current_user in database "${name}" set jit = off`])
}

/** Clones the template. @returns the database's URL, and a function that drops it. */
export async function cloneDatabase({ url, prefix }: TestServer) {
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  const drop = () => execute(url, [`drop database if exists "${name}" with (force)`])
  for (let attempt = 1; ; attempt++) {
    try {
      // Hundreds of small databases are created, and copying files needs a third of the work of logging each
      // page.
      await execute(url, [`create database "${name}" template "${prefix}_template" strategy file_copy`])
      await turnOffJit(url, name)
      return { url: databaseUrl(url, name), drop }
    } catch (error) {
      const passing = error instanceof Error && 'code' in error && error.code === IN_USE
      if (!passing || attempt === 10) throw error
    }
  }
}

const noteRow = object({ where: string().defined(), text: string().defined() })

/**
 * Reads the queue's contents and the sources of metrics. A test creates a few jobs. Checking ten thousand would
 * be slow and add nothing.
 */
const REST = sql.type(noteRow)`
  (select 'a job' as where, concat_ws(' ', name, data, output) as text from pgboss.job limit 2000)
  union all select 'the metrics', concat_ws(' ', figure, labels) from counters`

/** Gives the canary the queue's contents and the sources of metrics. */
export async function noteRest(url: string, watch: Canary = canary): Promise<void> {
  const client = new Client({ connectionString: url, application_name: NAME })
  await client.connect()
  try {
    const { rows } = await client.query<InferType<typeof noteRow>>(REST.sql)
    for (const row of rows) watch.note(row)
  } finally {
    await client.end()
  }
}

/** The databases whose rest the canary has. */
const noted = new Set<string>()

/**
 * Does so on a connection of a service that ends, because opening one is slower than the query. If that
 * fails, `testDatabase` does it.
 */
export async function noteRestOf(database: Database, url: string): Promise<void> {
  const rows = await database.any(REST).catch(() => null)
  for (const row of rows ?? []) canary.note(row)
  if (rows) noted.add(url)
}

/**
 * Creates a migrated database, which is dropped when the test ends. Call it before opening anything that
 * connects to it.
 */
export async function testDatabase(t: { teardown(drop: () => Promise<void>): unknown }) {
  const { url, drop } = await cloneDatabase(testServer())
  t.teardown(async () => {
    if (!noted.delete(url)) await noteRest(url)
    await drop()
  })
  return { url }
}
