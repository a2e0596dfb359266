/**
 * Migrates a database to this version: numbered .sql files, then the queues, then (once) the default catalog. Each
 * file runs once, in a transaction unless its first line is `-- outside a transaction`. Only one process migrates at
 * a time. Statements of a killed process are ended first. A file that waits too long for a lock, or deadlocks, is
 * rolled back and retried. A database with other migrations (by name or digest) isn't changed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { loadDefaultCatalog } from './accounts/plans/catalog.ts'
import { checkDefaultPlan } from './accounts/teams/create.ts'
import { codeOf, errorWords, RequestError } from './errors.ts'
import { connect, isPooled, isSameDatabase, liftTimeLimit, nameConnections } from './postgres/connect.ts'
import { turnOffJit } from './postgres/jit.ts'
import { openDatabase } from './postgres/pool.ts'
import { readToolSettings, SettingsFault } from './process/config.ts'
import { startFault } from './process/shutdown.ts'
import { migrateQueues } from './queue/boss.ts'
import { type Applied, historyFault, type Migration, migrationFiles } from './schema.sql.ts'
import { ELSEWHERE } from './start.ts'

const DIRECTORY = new URL('./migrations/', import.meta.url)
// Any number that no other program uses for advisory locks in this database.
const LOCK = 7_041_988
/** How often to check if the other process has finished, in milliseconds. */
const LOCK_POLL_MS = 300
/**
 * How long a file waits for a lock, in milliseconds, its attempts, and the pause between them. Two waits are shorter
 * than deadlock_timeout (1 s), so a file never makes PostgreSQL cancel an accept as a deadlock.
 */
const LOCK_WAIT = 400
const TRIES = 60
/** The last attempts first end autovacuums that block the file, for at most VACUUM_WAIT milliseconds. */
const LAST_TRIES = 3
const VACUUM_WAIT = 5_000
const TRY_PAUSE = 600
/** Lock timeout and deadlock. The file's transaction is rolled back. */
const GIVES_WAY = new Set(['55P03', '40P01'])
function unlessItGaveWay(error: unknown): void {
  if (!GIVES_WAY.has(codeOf(error) ?? '')) throw error
}
/** The application name of the session that runs the files. Only the process with the lock uses it. */
const RUNNER = 'heliograph migrate: files'
/** The first line of a file whose statements run one by one, such as `create index concurrently`. */
const OUTSIDE = /^-- outside a transaction\b/
// The number of the default catalog among the applied migrations. Files start with 1.
const CATALOG_LOADED = 0

type Options = { log: (line: string) => void; directory: URL; lockWait: number; tries: number }

/**
 * Waits until no other process migrates. The lock lasts as long as the transaction, which a pooler keeps on one
 * backend. Between two attempts, a waiting process releases its backend.
 */
async function lockMigrations(holder: Client): Promise<void> {
  for (;;) {
    await holder.query('begin')
    const { rows } = await holder.query<{ ours: boolean }>('select pg_try_advisory_xact_lock($1) as ours', [
      LOCK,
    ])
    if (rows[0]?.ours) break
    await holder.query('rollback')
    await sleep(LOCK_POLL_MS)
  }
  await holder.query('set local idle_in_transaction_session_timeout = 0')
}

/**
 * Ends autovacuums that block a file. PostgreSQL would cancel one only if a session waits longer than
 * deadlock_timeout, and sends would wait behind the file. Sends don't conflict with the lock used here.
 */
async function endVacuums(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(`
    select distinct relation::regclass::text as name from pg_locks l join pg_class c on c.oid = l.relation
    where l.mode = 'ShareUpdateExclusiveLock' and l.granted and c.relkind = 'r'
      and l.database = (select oid from pg_database where datname = current_database())
      and c.relnamespace = current_schema()::regnamespace and pg_has_role(c.relowner, 'usage')
    order by name`)
  for (const { name } of rows)
    await inTransaction(client, VACUUM_WAIT, () =>
      client.query(`lock table ${name} in share update exclusive mode`),
    ).catch(unlessItGaveWay)
}

async function inTransaction(client: Client, lockWait: number, work: () => Promise<unknown>): Promise<void> {
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = ${lockWait}; set local statement_timeout = 0`)
    await work()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

const applyInTransaction = (client: Client, migration: Migration, lockWait: number): Promise<void> =>
  inTransaction(client, lockWait, async () => {
    await client.query(migration.text)
    await note(client, migration)
  })

/** Statements are separated by empty lines. They must be safe to repeat. */
async function applyOutside(client: Client, migration: Migration): Promise<void> {
  for (const statement of migration.text.split(/\n\s*\n/)) await client.query(statement)
  await note(client, migration)
}

const note = async (client: Client, { number, file, digest }: Applied): Promise<void> =>
  void (await client.query('insert into schema_migrations (number, file, digest) values ($1, $2, $3)', [
    number,
    file,
    digest,
  ]))

/** Applies a file. If its tables are in use, it is rolled back and retried. */
async function apply(client: Client, migration: Migration, { log, lockWait, tries }: Options): Promise<void> {
  const { file } = migration
  if (OUTSIDE.test(migration.text)) return applyOutside(client, migration)
  for (let attempt = 1; ; attempt++) {
    try {
      if (attempt > tries - LAST_TRIES) await endVacuums(client)
      return await applyInTransaction(client, migration, lockWait)
    } catch (error) {
      unlessItGaveWay(error)
      if (attempt === tries)
        throw new Error(
          `Could not apply ${file}: timed out waiting for locks held by other sessions. Run the migration again.`,
        )
      if (attempt === 1) log(`${file} is waiting for a lock held by another session`)
      await sleep(TRY_PAUSE)
    }
  }
}

/** Returns the numbers of the applied migrations. @throws Error if the database has other migrations. */
async function readApplied(client: Client, files: readonly Migration[]): Promise<Set<number>> {
  await client.query(
    'create table if not exists schema_migrations (number integer primary key, file text not null, applied_at timestamptz not null default now(), digest text)',
  )
  const { rows } = await client.query<Applied>(
    "select number, file, to_jsonb(m) ->> 'digest' as digest from schema_migrations m",
  )
  const fault = historyFault(files, rows)
  if (fault !== null) throw new Error(fault)
  return new Set(rows.map(({ number }) => number))
}

async function applyFiles(client: Client, holder: Client, options: Options): Promise<void> {
  const files = await migrationFiles(options.directory)
  const done = await readApplied(client, files)
  for (const migration of files.filter(({ number }) => !done.has(number))) {
    // Fails if the connection, and with it the lock, was lost.
    await holder.query('select 1')
    await apply(client, migration, options)
    options.log(`applied ${migration.file}`)
  }
}

/**
 * Loads the default catalog once (DECISIONS: Plan catalog). It is marked as loaded after it was loaded, so the next
 * run completes a run that was killed.
 */
async function loadCatalogOnce(client: Client, url: string, log: (line: string) => void): Promise<void> {
  const { rowCount } = await client.query('select from schema_migrations where number = $1', [CATALOG_LOADED])
  if (rowCount) return
  const database = await openDatabase(url, { size: 1 })
  try {
    if (await loadDefaultCatalog(database)) log('loaded the default plan catalog')
  } finally {
    await database.end()
  }
  await note(client, { number: CATALOG_LOADED, file: 'default-catalog.json', digest: null })
}

/** Turns JIT off for later sessions. If the role can't, logs the statement for the operator. */
async function turnOffJitOnce(client: Client, log: (line: string) => void): Promise<void> {
  const change = await turnOffJit(client)
  if (change === null) return
  if (change.reason === null) log(`turned JIT off: ${change.statement}`)
  else log(`JIT is on, which slows down sending. Run \`${change.statement}\` (${change.reason})`)
}

/** PostgreSQL's code for insufficient privilege. */
const NOT_ALLOWED = '42501'

/** Adds the missing grants to a "permission denied" error, the most common problem with a new database. */
async function whatToGrant(client: Client, error: unknown): Promise<unknown> {
  if (codeOf(error) !== NOT_ALLOWED) return error
  const { rows } = await client.query<{ grants: string }>(`
    select concat_ws('; ',
      case when not has_schema_privilege(name, 'create') then format('grant create on schema %I to %I', name, current_user) end,
      case when not has_database_privilege(current_database(), 'create')
        then format('grant create on database %I to %I', current_database(), current_user) end) as grants
    from coalesce(current_schema(), 'public') as name`)
  const message = errorWords(error)
  const grants = rows[0]?.grants
  return grants
    ? new RequestError('unavailable', `${message}: ${grants}`)
    : new RequestError(
        'unavailable',
        `${message}: the role of DATABASE_URL must own the schema and its tables`,
      )
}

/**
 * Opens the session that runs the files. PostgreSQL ends it within seconds of its process, even during a statement. A
 * previous session that a pooler kept alive is terminated here. Idle ones aren't, because other clients may use them
 * under the old name. Logs `raise info`, such as the progress of a long copy.
 */
async function openRunner(url: string, log: (line: string) => void): Promise<Client> {
  const runner = await connect(url, { application_name: RUNNER })
  runner.on('notice', ({ severity, message }) => void (severity === 'INFO' && log(String(message))))
  await runner.query('set client_connection_check_interval = 1000').catch(() => {
    // Some platforms don't support it.
  })
  // A role can have a statement timeout (README: behind a pooler), and creating an index on millions of rows
  // is slow. Through a pooler, only statements in a transaction have no limit.
  if (!(await isPooled(url))) await liftTimeLimit(runner)
  await runner.query(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity
     where application_name = $1 and datname = current_database() and usename = current_user
       and pid <> pg_backend_pid() and state <> 'idle'`,
    [RUNNER],
  )
  return runner
}

/**
 * Migrates the database at `url`. Safe to run at every start, and in several processes at once.
 * @param log receives a line for each change.
 */
export async function migrate(
  url: string,
  log: (line: string) => void = () => {},
  { directory = DIRECTORY, lockWait = LOCK_WAIT, tries = TRIES }: Partial<Omit<Options, 'log'>> = {},
): Promise<void> {
  const holder = await connect(url, { application_name: 'heliograph release' })
  try {
    await lockMigrations(holder)
    const client = await openRunner(url, log)
    try {
      await applyFiles(client, holder, { log, directory, lockWait, tries })
      await migrateQueues(url)
      await loadCatalogOnce(client, url, log)
      await turnOffJitOnce(client, log)
    } catch (error) {
      throw await whatToGrant(holder, error)
    } finally {
      await client.end()
    }
  } finally {
    await holder.end()
  }
}

/** @throws SettingsFault if the catalog has no plan with the name in DEFAULT_PLAN. */
async function checkPlan(url: string, plan: string | undefined): Promise<void> {
  const database = await openDatabase(url, { size: 1 })
  await checkDefaultPlan(database, plan).finally(() => database.end())
}

/** The release step, `node db/migrate.ts`. */
async function main(): Promise<void> {
  const { DATABASE_URL, DATABASE_DIRECT_URL, DEFAULT_PLAN } = readToolSettings()
  nameConnections('release')
  if (!DATABASE_URL)
    throw new SettingsFault(['DATABASE_URL is not set. Set it to the postgres:// URL of the database'])
  if (DATABASE_DIRECT_URL && !(await isSameDatabase(DATABASE_URL, DATABASE_DIRECT_URL)))
    throw new SettingsFault([ELSEWHERE])
  const url = DATABASE_DIRECT_URL ?? DATABASE_URL
  await migrate(url, (line) => void process.stdout.write(`${line}\n`))
  await checkPlan(url, DEFAULT_PLAN)
  process.stdout.write('the database is up to date\n')
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(`${startFault(error) ?? errorWords(error)}\n`)
    process.exit(1)
  })
}
