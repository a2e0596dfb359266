/**
 * What `npm run test:one -- FILE… [--grep WORDS] [--watch]` runs: test files without lint and types, on a database
 * template that is kept for as long as the schema is the same. A file that needs no database starts none.
 * Promises: the counts and the exit code are those of `npm test` for these files. The server stops with the run; its
 * data stay in memory or in the temporary folder, one directory for each checkout.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, watch } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Client } from 'pg'
import { runningPostgres, startPostgres } from '../db/dev/postgres.ts'
import { createTemplate, hurryLogins, type TestServer } from './support/database.ts'
import { program, ROOT, testEnvironment } from './support/program.ts'
import { quickParent, SETTINGS } from './support/quick-server.ts'
import { runFiles } from './support/runners.ts'
import { type Counts, tapReport } from './support/tap-report.ts'

const USAGE = 'usage: npm run test:one -- FILE… [--grep WORDS] [--watch]'
const FOLDERS = ['api', 'workers', 'db', 'test']
/** What makes a template another one. */
const SCHEMA = ['db/migrations', 'db/queue', 'db/accounts/plans', 'db/migrate.ts', 'package-lock.json']
/** How long files may still change after the first, in milliseconds: an editor saves several at once. */
const CALM_MS = 100
const LEFT_OUT = /# SKIP filter/

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const filesIn = (path: string): string[] =>
  existsSync(path) && !path.match(/\.\w+$/) ? readdirSync(path).map((name) => join(path, name)) : [path]

/** Whether a file imports, itself or by way of others, what hands out databases. */
function needsDatabase(file: string, seen = new Set<string>()): boolean {
  if (file.endsWith('/support/database.ts')) return true
  if (seen.has(file) || !existsSync(file)) return false
  seen.add(file)
  const imports = readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)
  return [...imports].some(([, path]) => needsDatabase(resolve(dirname(file), path as string), seen))
}

/**
 * Makes the template of today's schema unless it is there. On a server of our own another schema's are dropped, and
 * what a killed run has left.
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
      const { migrate } = await import('../db/migrate.ts')
      await createTemplate({ url, prefix }, migrate)
    }
    return { url, prefix }
  } finally {
    await client.end()
  }
}

type Opened = { server: TestServer; close(): Promise<unknown> }

/** DATABASE_URL's server, one that another run in this checkout holds, or one of our own. */
async function openServer(parent: string): Promise<Opened> {
  const directory = join(
    parent,
    `heliograph-one-${createHash('sha256').update(ROOT).digest('hex').slice(0, 12)}`,
  )
  const found = process.env.DATABASE_URL || (await runningPostgres(directory).catch(() => null))
  if (found) return { server: await prepare(found, false), close: async () => {} }
  const postgres = await startPostgres({ directory, settings: SETTINGS })
  await hurryLogins(postgres.url)
  return { server: await prepare(postgres.url, true), close: postgres.stop }
}

async function runOnce(
  files: readonly string[],
  {
    grep,
    server,
    parent,
    stop,
  }: { grep?: string; server: TestServer | null; parent: string; stop: AbortSignal },
): Promise<Counts> {
  const scratch = await mkdtemp(join(tmpdir(), 'heliograph-one-run-'))
  // Open to pass through: run by root, PostgreSQL is somebody else.
  await chmod(scratch, 0o711)
  const report = tapReport(print)
  const env = {
    ...testEnvironment(server, join(parent, 'heliograph-one-compile-cache')),
    TMPDIR: scratch,
    // The first level are the files.
    ...(grep && { TAP_GREP: `/./\n${grep}` }),
  }
  try {
    await runFiles(files, {
      taken: join(scratch, 'taken'),
      stream: report.stream,
      start: ({ argv, line, stop: stuck, ...own }) =>
        program(
          { stop: AbortSignal.any([stop, stuck]) },
          ['node', ...argv],
          (text) => LEFT_OUT.test(text) || line(text),
          print,
          { ...env, ...own.env },
        ),
    })
    return report.finish()
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Resolves once a source file has changed and the others are calm. */
async function changed(stop: AbortSignal): Promise<void> {
  const { promise, resolve: done } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  const watchers = FOLDERS.map((folder) =>
    watch(join(ROOT, folder), { recursive: true }, () => {
      clearTimeout(timer)
      timer = setTimeout(done, CALM_MS)
    }),
  )
  stop.addEventListener('abort', () => done())
  await promise
  for (const watcher of watchers) watcher.close()
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { grep: { type: 'string' }, watch: { type: 'boolean' } },
  })
  const files = positionals.map((file) => relative(ROOT, resolve(file)))
  const missing = files.filter((file) => !existsSync(join(ROOT, file)))
  if (files.length === 0 || missing.length > 0)
    throw new Error([...missing.map((file) => `there is no ${file}`), USAGE].join('\n'))
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())
  const parent = await quickParent()
  const opened = files.some((file) => needsDatabase(join(ROOT, file))) ? await openServer(parent) : null
  try {
    for (;;) {
      const { passed, failed } = await runOnce(files, {
        ...(values.grep && { grep: values.grep }),
        server: opened?.server ?? null,
        parent,
        stop: stopping.signal,
      })
      print(`${passed} passed, ${failed} failed`)
      process.exitCode = failed === 0 ? 0 : 1
      if (!values.watch || stopping.signal.aborted) return
      print('waiting for a change …')
      await changed(stopping.signal)
      if (stopping.signal.aborted) return
    }
  } finally {
    await opened?.close()
  }
}

await main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
