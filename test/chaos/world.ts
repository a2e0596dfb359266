/**
 * The environment of faults: a database, two API and two worker processes, a relay, and the networks between
 * them. A process that ends is restarted at once, unless it must stay down. Everything ends with `close`.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { type Database, openDatabase } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { bareEnvironment, SECRET_KEY } from '../support/environment.ts'
import { procfileOptions, procfileVariables } from '../support/procfile.ts'
import {
  makeTeam,
  type Service,
  SMTP_REPORT_TOKEN,
  type TeamLimits,
  type TestTeam,
} from '../support/service.ts'
import { makeTemplate } from '../support/whatsapp.ts'
import { type Network, startNetwork } from './network.ts'
import { type Relay, startRelay } from './relay.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Each worker's maximum number of concurrent provider calls. */
export const CONCURRENCY = 10

export type Entry = 'api/main.ts' | 'workers/main.ts'

/** One process's own settings and Node arguments. */
export type Start = { env?: Record<string, string>; argv?: string[] }

/** A world's own database server, and its failover. */
export type OwnServer = { url: string; failOver(): Promise<void> }

type Closing = { teardown(end: () => Promise<void>): void }

/** How a world differs from two API and two worker processes with the usual settings. */
export type WorldOptions = {
  apis?: Start[]
  workers?: Start[]
  /** Settings of all processes. */
  env?: Record<string, string>
  /** Starts something between the network and the database at `url`. @returns its address. */
  before?: (url: string, closing: Closing) => Promise<string>
  /** Starts a separate server instead of using the given database. */
  server?: (closing: Closing) => Promise<OwnServer>
}

/** A process that is started again whenever it ends. */
export type Member = {
  /** Returns the current address of an API process, or '' while it is down. */
  base(): string
  /** True if it has reported that it is up and is still running. */
  isUp(): boolean
  pid(): number
  /**
   * Signals it only if it is up, because a process killed repeatedly at startup never works.
   * @returns true if it did.
   */
  signal(signal: NodeJS.Signals): boolean
  /** Ends it permanently. @returns its exit code or signal. */
  stop(signal?: NodeJS.Signals): Promise<number | string>
  /** How often it was started. */
  starts(): number
  /** Sends a request to a process that was started with a script of test/chaos/preload. */
  ask<T>(question: string): Promise<T>
}

export type World = {
  url: string
  database: Database
  /** Kills the database server and promotes its standby. Only with a separate server. */
  failOver(): Promise<void>
  /** All connections to the database, and the workers' connections to the relay. */
  toDatabase: Network
  toRelay: Network
  relay: Relay
  apis: Member[]
  workers: Member[]
  start(entry: Entry, own?: Start): Promise<Member>
  team(limits?: TeamLimits): Promise<TestTeam>
  whatsappTemplate(team: TestTeam, definition: Record<string, unknown>): Promise<{ id: string }>
  /** @throws Error once the world is closed. */
  sql<T>(text: string, values?: unknown[]): Promise<T[]>
  /** Aborted when it closes, which ends all repeated calls. */
  closed: AbortSignal
  close(): Promise<void>
}

/** The error of a closed world. */
const CLOSED = new Error('the world is closed')

/** Keeps one process running. */
async function startMember(entry: Entry, { env = {}, argv = [] }: Start): Promise<Member> {
  let child: ChildProcess
  let base = ''
  let up = false
  let starts = 0
  let wanted = true
  let ended = Promise.withResolvers<number | string>()
  const launch = (): Promise<void> => {
    starts += 1
    ended = Promise.withResolvers()
    child = fork(join(ROOT, entry), {
      env: {
        ...bareEnvironment(),
        ...procfileVariables(entry),
        SECRET_KEY,
        LOG_LEVEL: 'fatal',
        PORT: '0',
        ...env,
      },
      execArgv: [...procfileOptions(entry), ...argv],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child.once('exit', async (code, signal) => {
      base = ''
      up = false
      ended.resolve(signal ?? code ?? 0)
      // A process that can't start because its database is down isn't restarted in a tight loop.
      if (wanted && code === 1) await sleep(300)
      if (wanted) await launch()
    })
    return Promise.race([
      once(child, 'message').then(([said]) => {
        base = `http://127.0.0.1:${(said as { port?: number }).port}`
        up = true
      }),
      ended.promise.then(() => {}),
    ])
  }
  await launch()
  return {
    base: () => base,
    isUp: () => up,
    pid: () => child.pid ?? 0,
    signal: (signal) => up && child.kill(signal),
    starts: () => starts,
    async ask(question) {
      child.send(question)
      const [answer] = await once(child, 'message')
      return answer
    },
    stop(signal = 'SIGTERM') {
      wanted = false
      const last = ended.promise
      child.kill('SIGCONT')
      child.kill(signal)
      return last
    },
  }
}

/** Returns the URL with another port of this machine. */
export function through(url: string, port: number): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(port)
  return changed.href
}

/** Opens a world over a migrated database. */
export async function openWorld(
  given: string,
  { apis = [{}, {}], workers = [{}, {}], env = {}, before, server }: WorldOptions = {},
): Promise<World> {
  const endings: (() => Promise<void>)[] = []
  const closing: Closing = { teardown: (end) => void endings.unshift(end) }
  const own = await server?.(closing)
  const url = own?.url ?? given
  const relay = await startRelay()
  const target = before ? await before(url, closing) : url
  const toDatabase = await startNetwork(Number(new URL(target).port))
  const toRelay = await startNetwork(relay.port)
  const database = await openDatabase(url, { size: 5 })
  const admin = await connected(url)
  const closed = new AbortController()
  const members: Member[] = []
  const start: World['start'] = async (entry, own = {}) => {
    // The name in EHLO identifies the worker to the relay.
    const relayUrl = `smtp://127.0.0.1:${toRelay.port}?name=member${members.length}.test`
    const settings = {
      DATABASE_URL: through(url, toDatabase.port),
      SMTP_URL: relayUrl,
      SMTP_REPORT_TOKEN,
      WORKER_CONCURRENCY: String(CONCURRENCY),
    }
    const member = await startMember(entry, { ...own, env: { ...settings, ...env, ...own.env } })
    members.push(member)
    return member
  }
  const startAll = (entry: Entry, each: readonly Start[]) => Promise.all(each.map((own) => start(entry, own)))
  const place = { database, deps: { clock: () => new Date(), secrets: createSecrets(SECRET_KEY) } }
  return {
    url,
    database,
    failOver: async () => {
      if (!own) throw new Error('the database server is not this world’s own')
      await own.failOver()
    },
    toDatabase,
    toRelay,
    relay,
    apis: await startAll('api/main.ts', apis),
    workers: await startAll('workers/main.ts', workers),
    start,
    team: (limits = {}) => makeTeam(place as unknown as Service, { email_limit: 1_000_000, ...limits }),
    whatsappTemplate: ({ id }, definition) => makeTemplate(place as unknown as Service, id, definition),
    sql: async (text, values) => {
      closed.signal.throwIfAborted()
      return (await admin.client().query(text, values)).rows
    },
    closed: closed.signal,
    async close() {
      closed.abort(CLOSED)
      toDatabase.weather('calm')
      toRelay.weather('calm')
      await Promise.all(members.map((member) => member.stop('SIGKILL')))
      await Promise.allSettled([relay.close(), toDatabase.close(), toRelay.close(), database.end()])
      await admin.end()
      for (const end of endings) await end()
    },
  }
}

/** Opens a connection that is reopened after a crash of the database, until it is ended. */
async function connected(url: string): Promise<{ client(): Client; end(): Promise<void> }> {
  let client: Client
  let over = false
  let repair = Promise.resolve()
  const connect = async (): Promise<void> => {
    const fresh = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
    // It may emit two errors. Reconnecting for both would leave a connection open.
    fresh
      .on('error', () => {})
      .once('error', () => {
        repair = reconnect()
      })
    await fresh.connect()
    // Not earlier, because a query on a client that never connects never returns.
    client = fresh
  }
  const reconnect = async (): Promise<void> => {
    while (!over) {
      await sleep(200)
      const again = await connect().then(
        () => true,
        () => false,
      )
      if (again) return
    }
  }
  await connect()
  return {
    client: () => client,
    async end() {
      over = true
      await repair
      await client.end()
    },
  }
}

/**
 * Waits until a condition is true.
 * @returns false if it isn't within `seconds`, or if the world is closed.
 */
export async function within(seconds: number, holds: () => Promise<boolean> | boolean): Promise<boolean> {
  const end = performance.now() + seconds * 1_000
  for (;;) {
    try {
      if (await holds()) return true
    } catch (error) {
      if (error === CLOSED) return false
    }
    if (performance.now() > end) return false
    await sleep(100)
  }
}
