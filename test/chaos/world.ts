/**
 * The world that faults happen in: a database, two API and two worker processes, a relay, and the networks between.
 * Promises: a process that ends is started again at once, unless it was told to stay away; all of it ends with
 * `close`. Counts what was promised to clients and what became of it.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { type Database, openDatabase } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { bareEnvironment } from '../support/environment.ts'
import { makeTeam, SECRET_KEY, type Service, type TeamLimits, type TestTeam } from '../support/service.ts'
import { type Network, startNetwork } from './network.ts'
import { type Relay, startRelay } from './relay.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Provider calls at once of each worker. */
export const CONCURRENCY = 10

export type Entry = 'api/main.ts' | 'workers/main.ts'

/** A process that is started again whenever it ends. */
export type Member = {
  /** Where an API process listens just now; '' while it is away. */
  base(): string
  pid(): number
  signal(signal: NodeJS.Signals): void
  /** Ends it for good. @returns its exit code or signal. */
  stop(signal?: NodeJS.Signals): Promise<number | string>
  /** How often it was started. */
  starts(): number
}

export type World = {
  url: string
  database: Database
  /** The way of all processes to the database, and of the workers to the relay. */
  toDatabase: Network
  toRelay: Network
  relay: Relay
  apis: Member[]
  workers: Member[]
  start(entry: Entry, env?: Record<string, string>): Promise<Member>
  team(limits?: TeamLimits): Promise<TestTeam>
  sql<T>(text: string, values?: unknown[]): Promise<T[]>
  close(): Promise<void>
}

/** Keeps one process running. */
async function startMember(entry: Entry, env: Record<string, string>): Promise<Member> {
  let child: ChildProcess
  let base = ''
  let starts = 0
  let wanted = true
  let ended = Promise.withResolvers<number | string>()
  const launch = (): Promise<void> => {
    starts += 1
    ended = Promise.withResolvers()
    child = fork(join(ROOT, entry), {
      env: { ...bareEnvironment(), SECRET_KEY, LOG_LEVEL: 'fatal', PORT: '0', ...env },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child.once('exit', async (code, signal) => {
      base = ''
      ended.resolve(signal ?? code ?? 0)
      // A process that cannot start yet, its database being away, is not started in a tight loop.
      if (wanted && code === 1) await sleep(300)
      if (wanted) await launch()
    })
    return Promise.race([
      once(child, 'message').then(([up]) => {
        base = `http://127.0.0.1:${(up as { port?: number }).port}`
      }),
      ended.promise.then(() => {}),
    ])
  }
  await launch()
  return {
    base: () => base,
    pid: () => child.pid ?? 0,
    signal: (signal) => void child.kill(signal),
    starts: () => starts,
    stop(signal = 'SIGTERM') {
      wanted = false
      const last = ended.promise
      child.kill('SIGCONT')
      child.kill(signal)
      return last
    },
  }
}

/** The same URL by another port of this machine. */
function through(url: string, port: number): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(port)
  return changed.href
}

/** Opens a world over a migrated database. */
export async function openWorld(
  url: string,
  { apis = 2, workers = 2, env = {} }: { apis?: number; workers?: number; env?: Record<string, string> } = {},
): Promise<World> {
  const relay = await startRelay()
  const toDatabase = await startNetwork(Number(new URL(url).port))
  const toRelay = await startNetwork(relay.port)
  const database = await openDatabase(url, { size: 5 })
  const admin = await connected(url)
  const members: Member[] = []
  const start: World['start'] = async (entry, own = {}) => {
    const member = await startMember(entry, {
      DATABASE_URL: through(url, toDatabase.port),
      SMTP_URL: `smtp://127.0.0.1:${toRelay.port}`,
      WORKER_CONCURRENCY: String(CONCURRENCY),
      ...env,
      ...own,
    })
    members.push(member)
    return member
  }
  const many = (entry: Entry, count: number) => Promise.all(Array.from({ length: count }, () => start(entry)))
  const place = { database, deps: { clock: () => new Date(), secrets: createSecrets(SECRET_KEY) } }
  return {
    url,
    database,
    toDatabase,
    toRelay,
    relay,
    apis: await many('api/main.ts', apis),
    workers: await many('workers/main.ts', workers),
    start,
    team: (limits = {}) => makeTeam(place as unknown as Service, { email_limit: 1_000_000, ...limits }),
    sql: async (text, values) => (await admin().query(text, values)).rows,
    async close() {
      toDatabase.weather('calm')
      toRelay.weather('calm')
      await Promise.all(members.map((member) => member.stop('SIGKILL')))
      await Promise.allSettled([relay.close(), toDatabase.close(), toRelay.close(), database.end()])
      await admin().end()
    },
  }
}

/** A connection that is made anew after a crash of the database. */
async function connected(url: string): Promise<() => Client> {
  let client: Client
  const connect = async (): Promise<void> => {
    client = new Client({ connectionString: url })
    client.on('error', async () => {
      for (;;) {
        await sleep(200)
        const again = await connect().then(
          () => true,
          () => false,
        )
        if (again) return
      }
    })
    await client.connect()
  }
  await connect()
  return () => client
}

/** Waits until a condition holds. @returns false when it does not within `seconds`. */
export async function within(seconds: number, holds: () => Promise<boolean> | boolean): Promise<boolean> {
  const end = performance.now() + seconds * 1_000
  for (;;) {
    if (await Promise.resolve(holds()).catch(() => false)) return true
    if (performance.now() > end) return false
    await sleep(100)
  }
}
