/**
 * Provides the server for tests outside test/run.ts: DATABASE_URL's, another run's in this checkout, or a
 * separate one, with a template that is kept while the schema is unchanged.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Client } from 'pg'
import { runningPostgres, startPostgres } from '../../db/dev/postgres.ts'
import { createTemplate, hurryLogins, socketOf, type TestServer } from './database.ts'
import { ROOT } from './program.ts'
import { RUN_SETTINGS } from './quick-server.ts'

/** Files that define the template. */
const SCHEMA = [
  ...['db/migrations', 'db/queue', 'db/accounts/plans', 'db/migrate.ts', 'package-lock.json'],
  'test/support/database.ts',
]
const filesIn = (path: string): string[] =>
  existsSync(path) && !path.match(/\.\w+$/) ? readdirSync(path).map((name) => join(path, name)) : [path]

/** True if a file needs databases, through direct or indirect imports. */
export function needsDatabase(file: string, seen = new Set<string>()): boolean {
  if (file.endsWith('/support/database.ts')) return true
  if (seen.has(file) || !existsSync(file)) return false
  seen.add(file)
  const imports = readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)
  return [...imports].some(([, path]) => needsDatabase(resolve(dirname(file), path as string), seen))
}

/**
 * Creates the template of the current schema unless it exists. On our own server, drops the templates of
 * other schemas and the databases of killed runs.
 */
async function prepare(url: string, isOurs: boolean): Promise<TestServer> {
  const hash = createHash('sha256')
  for (const file of SCHEMA.flatMap((path) => filesIn(join(ROOT, path)))) hash.update(readFileSync(file))
  const prefix = `heliograph_one_${hash.digest('hex').slice(0, 12)}`
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string; isWhole: boolean }>(
      `select datname as name, not datallowconn as "isWhole" from pg_database where datname like 'heliograph\\_one\\_%'`,
    )
    const kept = rows.find(({ name, isWhole }) => name === `${prefix}_template` && isWhole)
    for (const { name } of rows)
      if (isOurs ? name !== kept?.name : !kept && name === `${prefix}_template`)
        await client.query(`drop database if exists "${name}" with (force)`)
    if (!kept) {
      const { migrate } = await import('../../db/migrate.ts')
      await createTemplate({ url, prefix }, migrate)
    }
    return { url, prefix, ...(process.env.DATABASE_URL ? {} : await socketOf(url)) }
  } finally {
    await client.end()
  }
}

type Opened = { server: TestServer; close(): Promise<unknown> }

/** The prefix of this checkout's files between runs. Those of another checkout or user aren't used. */
export const keptName = `heliograph-one-${createHash('sha256').update(ROOT).digest('hex').slice(0, 12)}`

/** Opens the server for the tests. @param parent the folder for the data of a separate server. */
export async function openServer(parent: string): Promise<Opened> {
  const directory = join(parent, keptName)
  const found = process.env.DATABASE_URL || (await runningPostgres(directory).catch(() => null))
  if (found) return { server: await prepare(found, false), close: async () => {} }
  const postgres = await startPostgres({ directory, settings: RUN_SETTINGS })
  await hurryLogins(postgres.url)
  return { server: await prepare(postgres.url, true), close: postgres.stop }
}
