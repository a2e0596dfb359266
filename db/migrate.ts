/**
 * Brings a database to this version: numbered .sql files, then the queues, then (once) the default catalog.
 * Promises: each file runs once, in a transaction, under an advisory lock, so several processes may start at
 * once; a file that has landed is never edited. Must not change rows beyond what a migration says.
 */
import { readdir, readFile } from 'node:fs/promises'
import { Client } from 'pg'
import { loadDefaultCatalog } from './plans/catalog.ts'
import { openDatabase } from './postgres/pool.ts'
import { readToolSettings, SettingsFault } from './process/config.ts'
import { startFault } from './process/shutdown.ts'
import { migrateQueues } from './queue/boss.ts'

const DIRECTORY = new URL('./migrations/', import.meta.url)
const NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/
// Any number that no other program uses on this database.
const LOCK = 7_041_988
// The number that the default catalog has among the migrations that were applied; the files begin with 1.
const CATALOG_LOADED = 0

/** The migration files in order. @throws Error when a name is malformed or a number missing or repeated. */
export async function migrationFiles(): Promise<{ number: number; file: string }[]> {
  const files = (await readdir(DIRECTORY)).filter((file) => file.endsWith('.sql')).sort()
  return files.map((file, index) => {
    const number = Number(NAME.exec(file)?.[1])
    if (number !== index + 1) throw new Error(`migrations must be numbered without gaps: ${file}`)
    return { number, file }
  })
}

async function applyFiles(client: Client, log: (line: string) => void): Promise<void> {
  await client.query(
    'create table if not exists schema_migrations (number integer primary key, file text not null, applied_at timestamptz not null default now())',
  )
  const applied = await client.query<{ number: number }>('select number from schema_migrations')
  const done = new Set(applied.rows.map((row) => row.number))
  for (const { number, file } of await migrationFiles()) {
    if (done.has(number)) continue
    await client.query('begin')
    await client.query(await readFile(new URL(file, DIRECTORY), 'utf8'))
    await client.query('insert into schema_migrations (number, file) values ($1, $2)', [number, file])
    await client.query('commit')
    log(`applied ${file}`)
  }
}

/**
 * Loads the default catalog at the first run only, whatever an operator makes of it later (decisions: default catalog).
 * Told by a mark that comes after it, so that a first run that was killed half-way is made good by the next.
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
  await client.query('insert into schema_migrations (number, file) values ($1, $2)', [
    CATALOG_LOADED,
    'default-catalog.json',
  ])
}

/**
 * Migrates the database at `url`. Safe to run at every start and from several processes at once.
 * @param log takes a line for each step that changed something.
 */
export async function migrate(url: string, log: (line: string) => void = () => {}): Promise<void> {
  const client = new Client({ connectionString: url, application_name: 'heliograph migrate' })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    await applyFiles(client, log)
    await migrateQueues(url)
    await loadCatalogOnce(client, url, log)
  } finally {
    await client.end()
  }
}

/** The release step: `node db/migrate.ts`. */
async function main(): Promise<void> {
  const { DATABASE_URL } = readToolSettings()
  if (!DATABASE_URL) throw new SettingsFault(['DATABASE_URL is missing: the postgres:// URL of the database'])
  await migrate(DATABASE_URL, (line) => void process.stdout.write(`${line}\n`))
  process.stdout.write('the database is up to date\n')
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    const said = error instanceof Error ? error.message : String(error)
    process.stderr.write(`${startFault(error) ?? said}\n`)
    process.exit(1)
  })
}
