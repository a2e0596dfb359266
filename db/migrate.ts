/**
 * Migrates a database to this version: numbered .sql files, then the queues, then (once) the default catalog.
 * Each file runs once, in a transaction unless its first line says otherwise. One process migrates at a time,
 * also through a pooler, and statements of a killed one end first. A file that waits long for a lock, or
 * deadlocks with an accept, lets the others pass and is retried. A database with other files, by name or
 * digest, isn't changed. Rows only change as a migration says.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { loadDefaultCatalog } from './accounts/plans/catalog.ts'
import { checkDefaultPlan } from './accounts/teams/create.ts'
import { errorWords, RequestError } from './errors.ts'
import { connect, isPooled, isSameDatabase, liftTimeLimit, nameConnections } from './postgres/connect.ts'
import { turnOffJit } from './postgres/jit.ts'
import { openDatabase } from './postgres/pool.ts'
import { readToolSettings, SettingsFault } from './process/config.ts'
import { startFault } from './process/shutdown.ts'
import { migrateQueues } from './queue/boss.ts'
import { type Applied, historyFault, type Migration, migrationFiles } from './schema.sql.ts'
import { ELSEWHERE } from './start.ts'

const DIRECTORY = new URL('./migrations/', import.meta.url)
// Any number that no other program uses on this database.
const LOCK = 7_041_988
/** How often to ask whether the other process has finished, in milliseconds. */
const LOCK_POLL_MS = 300
/**
 * How long a file waits for a lock, in milliseconds, how often it is tried, and the pause between. Two such waits are
 * over before deadlock_timeout (1 s), so that no accept is ever ended for a deadlock with a file.
 */
const LOCK_WAIT = 400
const TRIES = 60
/** How many of the tries, the last, end an autovacuum that is in the way; how long that may take, in milliseconds. */
const LAST_TRIES = 3
const VACUUM_WAIT = 5_000
const TRY_PAUSE = 600
/** Lock timeout and deadlock: the file's transaction is undone as if it had never begun. */
const GIVES_WAY = new Set(['55P03', '40P01'])
function unlessItGaveWay(error: unknown): void {
  if (!GIVES_WAY.has(String((error as { code?: unknown }).code))) throw error
}
/** How the session is called that runs the files: only the one that has the lock has it. */
const RUNNER = 'heliograph migrate: files'
/** The first line of a file whose statements run one by one, such as `create index concurrently`. */
const OUTSIDE = /^-- outside a transaction\b/
// The number that the default catalog has among the migrations that were applied; the files begin with 1.
const CATALOG_LOADED = 0

type Options = { log: (line: string) => void; directory: URL; lockWait: number; tries: number }

/**
 * Waits until no other process migrates. The lock lasts as long as the transaction, which a pooler keeps on one
 * backend; a waiting process gives its backend back between two tries, so that the other one finds one.
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
 * PostgreSQL cancels an autovacuum for a session that waits for it longer than deadlock_timeout. Sends would wait
 * behind a file for as long; they neither wait for this lock nor behind it.
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

/** Statements stand apart by an empty line, and have none in them. They must be safe to run again. */
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

/** A file that finds its tables in use lets the others pass and tries again. */
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
          `Could not apply ${file}: timed out waiting for locks held by other sessions. Run the release step again.`,
        )
      if (attempt === 1) log(`${file} is waiting for a lock held by another session`)
      await sleep(TRY_PAUSE)
    }
  }
}

/** The migrations that the database has. @throws Error for a database of another history. */
async function appliedOf(client: Client, files: readonly Migration[]): Promise<Set<number>> {
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
  const done = await appliedOf(client, files)
  for (const migration of files.filter(({ number }) => !done.has(number))) {
    // Fails when the lock was lost with its connection.
    await holder.query('select 1')
    await apply(client, migration, options)
    options.log(`applied ${migration.file}`)
  }
}

/**
 * Loads the default catalog at the first run only, whatever an operator makes of it later (DECISIONS: Plan catalog).
 * Recognised by a mark that comes after it, so that a first run that was killed half-way is made good by the next.
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

/** Sessions that follow do not compile statements. A role that may not say so hears what its operator is to run. */
async function turnOffJitOnce(client: Client, log: (line: string) => void): Promise<void> {
  const change = await turnOffJit(client)
  if (change === null) return
  if (change.reason === null) log(`turned JIT off: ${change.statement}`)
  else log(`JIT is on, which makes sends slower. Run \`${change.statement}\` (${change.reason})`)
}

/** What PostgreSQL says of a statement that its role may not make. */
const NOT_ALLOWED = '42501'

/** In place of a bare "permission denied", what to grant: it is the first fault that most new databases show. */
async function whatToGrant(client: Client, error: unknown): Promise<unknown> {
  if ((error as { code?: unknown }).code !== NOT_ALLOWED) return error
  const { rows } = await client.query<{ grants: string }>(`
    select concat_ws('; ',
      case when not has_schema_privilege(name, 'create') then format('grant create on schema %I to %I', name, current_user) end,
      case when not has_database_privilege(current_database(), 'create')
        then format('grant create on database %I to %I', current_database(), current_user) end) as grants
    from coalesce(current_schema(), 'public') as name`)
  const { message } = error as Error
  const grants = rows[0]?.grants
  return grants
    ? new RequestError('unavailable', `${message}: ${grants}`)
    : new RequestError(
        'unavailable',
        `${message}: the role of DATABASE_URL must own the schema and its tables`,
      )
}

/**
 * The session that runs the files. It ends in the server within seconds of its process, in mid-statement too; one that
 * a pooler keeps alive all the same is ended here, since it is no longer anybody's turn; one that is idle is the
 * pooler's to hand out again, and still has the name of whom it served last. What a file says by
 * `raise info`, such as how far a long copy has come, is logged.
 */
async function openRunner(url: string, log: (line: string) => void): Promise<Client> {
  const runner = await connect(url, { application_name: RUNNER })
  runner.on('notice', ({ severity, message }) => void (severity === 'INFO' && log(String(message))))
  await runner.query('set client_connection_check_interval = 1000').catch(() => {
    // A server on a system that cannot tell.
  })
  // A role may bound its statements (README: behind a pooler); an index of millions takes longer. Through a pooler only
  // what runs in a transaction has no limit.
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
 * Migrates the database at `url`. Safe to run at every start and from several processes at once.
 * @param log takes a line for each step that changed something.
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

/** @throws SettingsFault if DEFAULT_PLAN names no plan of the catalog. */
async function checkPlan(url: string, plan: string | undefined): Promise<void> {
  const database = await openDatabase(url, { size: 1 })
  await checkDefaultPlan(database, plan).finally(() => database.end())
}

/** The release step: `node db/migrate.ts`. */
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
