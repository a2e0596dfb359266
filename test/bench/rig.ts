/**
 * Provides the environment of the bench: a separate PostgreSQL with default durability, a fresh database per
 * row, the API and workers as processes, and their memory and CPU time as counted by the kernel.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { startPostgres } from '../../db/dev/postgres.ts'
import { migrate } from '../../db/migrate.ts'
import { type Database, openDatabase } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import type { Up } from '../../db/process/shutdown.ts'
import { createTemplate, databaseUrl, dropDatabases } from '../support/database.ts'
import { SECRET_KEY } from '../support/environment.ts'
import { procfileOptions, procfileVariables } from '../support/procfile.ts'
import { makeTeam, type Service, type TestTeam } from '../support/service.ts'
import { startTenMillion } from './ten-million.ts'

const ROOT = join(import.meta.dirname, '../..')
const TICKS_PER_SECOND = 100
const RATE = { email_limit: 100_000_000, contact_limit: 100_000_000, whatsapp_limit: 100_000_000 }

/** One of our processes, with its measurements. */
export type Watched = {
  /** Where an API listens. */
  base: string
  /** The current resident memory in megabytes, and the peak, as counted by the kernel. */
  rss(): Promise<number>
  peak(): Promise<number>
  /** The CPU time since its start, in seconds. */
  cpu(): Promise<number>
  /** Stops it until it is resumed. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

/** A separate database for a row, and functions that create rows in it. */
export type Place = {
  url: string
  database: Database
  teams(count: number): Promise<TestTeam[]>
  api(env?: Record<string, string>, preload?: string): Promise<Watched>
  worker(env: Record<string, string>): Promise<Watched>
  close(): Promise<void>
}

export type Rig = {
  place(): Promise<Place>
  /** The place with ten million emails, on a separate server (ten-million.ts). */
  full(): Promise<Place>
  version: string
  stop(): Promise<void>
}

/** The directory of the ten million emails, and the function that prints the progress of loading them. */
/** `url` is a server to use instead of the embedded one, with its own settings. */
export type Kept = { store: string; say: (line: string) => void; url?: string | undefined }

async function megabytes(pid: number, of: 'VmRSS' | 'VmHWM'): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${of}:\\s+(\\d+)`).exec(text)?.[1]) / 1024
}

async function cpuOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Starts one of our entry files and waits until it is up. */
export async function launch(file: string, env: Record<string, string>, preload?: string): Promise<Watched> {
  const preloaded = preload === undefined ? [] : ['--import', join(import.meta.dirname, preload)]
  const child: ChildProcess = fork(join(ROOT, file), {
    env: { ...process.env, ...procfileVariables(file), SECRET_KEY, LOG_LEVEL: 'warn', ...env },
    execArgv: [...procfileOptions(file), ...preloaded],
  })
  const died = once(child, 'exit').then(([code]) => Promise.reject(new Error(`${file} ended with ${code}`)))
  const [{ port }] = (await Promise.race([once(child, 'message'), died])) as [Up]
  died.catch(() => {})
  const pid = child.pid ?? 0
  return {
    base: `http://127.0.0.1:${port}`,
    rss: () => megabytes(pid, 'VmRSS'),
    peak: () => megabytes(pid, 'VmHWM'),
    cpu: () => cpuOf(pid),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

async function openPlace(url: string): Promise<Place> {
  const database = await openDatabase(url, { size: 10, statementTimeout: 600_000 })
  const deps = { secrets: createSecrets(SECRET_KEY), clock: () => new Date(), log: pino({ level: 'silent' }) }
  const service = { database, deps } as unknown as Pick<Service, 'database' | 'deps'>
  const started: Watched[] = []
  const watched = async (process: Promise<Watched>): Promise<Watched> => {
    const one = await process
    started.push(one)
    return one
  }
  return {
    url,
    database,
    teams: (count) =>
      Promise.all(Array.from({ length: count }, () => makeTeam(service, { ...RATE, rate: 100_000 }))),
    api: (env = {}, preload) =>
      watched(launch('api/main.ts', { DATABASE_URL: url, PORT: '0', ...env }, preload)),
    worker: (env) => watched(launch('workers/main.ts', { DATABASE_URL: url, ...env })),
    async close() {
      await Promise.all(started.map((one) => one.stop()))
      await database.end()
    },
  }
}

/** Starts the server and migrates the template of the rows' databases. */
export async function startRig({ store, say, url }: Kept): Promise<Rig> {
  const directory = await mkdtemp(join(tmpdir(), 'heliograph-bench-'))
  const postgres = url
    ? { url, stop: async () => {} }
    : await startPostgres({ directory, settings: { max_connections: '200' } })
  const server = { url: postgres.url, prefix: 'bench' }
  await createTemplate(server, (template) => migrate(template))
  const admin = await openDatabase(postgres.url, { size: 1 })
  const { sql } = await import('slonik')
  const version = String(await admin.oneFirst(sql.unsafe`show server_version`))
  let count = 0
  return {
    version,
    async place() {
      const name = `bench_${++count}`
      await admin.query(sql.unsafe`
        create database ${sql.identifier([name])} template ${sql.identifier(['bench_template'])}`)
      return openPlace(databaseUrl(postgres.url, name))
    },
    async full() {
      const full = await startTenMillion(store, say)
      const place = await openPlace(full.url)
      const close = async () => {
        await place.close()
        await full.server.stop()
      }
      return { ...place, close }
    },
    async stop() {
      await admin.end()
      // An embedded server is deleted with its databases.
      if (url) await dropDatabases(server)
      await postgres.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/**
 * Measures several open places in turns, seconds apart, because the machine's speed varies. Only the current
 * one runs.
 * @returns the results of each one's turns.
 */
export async function takeTurns<T extends Pick<Watched, 'pause' | 'resume'>>(
  all: readonly T[],
  rounds: number,
  turn: (one: T) => Promise<number>,
): Promise<number[][]> {
  const found = all.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, one] of all.entries()) {
      const others = all.filter((other) => other !== one)
      for (const other of others) other.pause()
      try {
        found[index]?.push(await turn(one))
      } finally {
        for (const other of others) other.resume()
      }
    }
  }
  return found
}
