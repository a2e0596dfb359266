/**
 * Creates the cluster of the embedded PostgreSQL, starts it and creates the database. A cluster exists completely or
 * not at all. The server listens on 127.0.0.1 only, requires the password, and survives a Ctrl-C in the terminal.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { access, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorWords } from '../errors.ts'
import type { ServerLocation } from './place.ts'
import { ENVIRONMENT, kept, OWN_SERVER, postmasterFile, run, stopServer, writePrivate } from './process.ts'

export type Settings = Readonly<Record<string, string>>

const SETTINGS: Settings = {
  listen_addresses: '127.0.0.1',
  // No socket file. Its path can be too long, or its directory inaccessible to the user.
  unix_socket_directories: '',
  max_connections: '200',
  timezone: 'UTC',
  log_timezone: 'UTC',
}

const INITDB = [
  '--username=heliograph',
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
]

// Recovery after a kill -9 can be slow.
const READY_WITHIN_MS = 120_000
const ATTEMPTS = 5

/** Creates the cluster if it doesn't exist. @returns its password. @param noSync skips the flush to disk. */
export async function ensureCluster(place: ServerLocation, noSync: boolean): Promise<string> {
  const { home, data } = place
  const secret = join(home, 'password')
  if (await access(join(data, 'PG_VERSION')).then(...kept)) {
    return readFile(secret, 'utf8').catch(() => {
      throw new Error(`${secret} cannot be read: delete ${home} to start over, ${OWN_SERVER}`)
    })
  }
  const password = randomBytes(24).toString('hex')
  await writePrivate(secret, password, place.account)
  const flags = [...INITDB, `--pwfile=${secret}`, ...(noSync ? ['--no-sync'] : [])]
  try {
    // pg_trgm uses the system's locale for non-ASCII letters: C.UTF-8 if it exists, or C, which always does.
    await makeCluster(place, [...flags, '--lc-ctype=C.UTF-8']).catch(() =>
      makeCluster(place, [...flags, '--lc-ctype=C']),
    )
  } catch (error) {
    throw new Error(
      `cannot create a database cluster in ${home}: ${errorWords(error)}\nFree some disk space, delete ${home}, ${OWN_SERVER}`,
    )
  }
  return password
}

/**
 * Creates the cluster under another name and renames it at the end, so that a killed initdb leaves no broken cluster.
 */
async function makeCluster({ data, bin, account }: ServerLocation, flags: string[]): Promise<void> {
  const fresh = `${data}.new`
  await rm(fresh, { recursive: true, force: true })
  await mkdir(fresh, { mode: 0o700 })
  if (account.uid !== undefined) await run('chown', [`${account.uid}:${account.gid}`, fresh])
  await run(join(bin, 'initdb'), ['-D', fresh, ...flags], account)
  await rename(fresh, data)
}

/** Starts the server. @returns its port. @throws Error with the end of the server's log. */
export async function launch(place: ServerLocation, port?: number, settings?: Settings): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const chosen = port ?? (await freePort())
    await disarmStaleLock(place)
    const fault = await launchOnce(place, { ...SETTINGS, ...settings, port: String(chosen) })
    if (fault === null) return chosen
    const taken = /could not bind/.test(fault)
    if (taken && port !== undefined)
      throw new Error(`port ${port} is in use. Stop the program that listens there, ${OWN_SERVER}`)
    // Sessions of a killed server use its shared memory until they notice, a moment later.
    const passing = taken || /shared memory block/.test(fault)
    if (!passing || attempt === ATTEMPTS)
      throw new Error(`PostgreSQL did not start:\n${fault}\nFix the cause, ${OWN_SERVER}`)
    await sleep(500)
  }
}

/** Starts the server once. @returns null once it accepts connections, or the end of its log. */
async function launchOnce(place: ServerLocation, settings: Settings): Promise<string | null> {
  const file = join(place.home, 'server.log')
  await rm(file, { force: true })
  const log = await open(file, 'wx', 0o600)
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(join(place.bin, 'postgres'), ['-D', place.data, ...flags], {
    ...place.account,
    cwd: '/',
    env: ENVIRONMENT,
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
  })
  server.unref()
  await log.close()
  const fault = await readiness(server, place.data)
  if (fault === null) return null
  await stopServer(place.data)
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  return [...lines.slice(-12), `${fault}. The complete log is in ${file}`].join('\n')
}

/** Waits until the server accepts connections. @returns null, or why it doesn't. */
async function readiness(server: ChildProcess, data: string): Promise<string | null> {
  let fault: string | null = null
  server.once('error', (error) => {
    fault = error.message
  })
  server.once('exit', (code, signal) => {
    fault = `it exited with ${signal ?? code}`
  })
  for (const deadline = Date.now() + READY_WITHIN_MS; Date.now() < deadline; await sleep(20)) {
    if (fault !== null) return fault
    const lines = (await postmasterFile(data)).split('\n')
    if (Number(lines[0]) === server.pid && lines[7]?.trim() === 'ready') return null
  }
  return "it wasn't ready in time"
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

/**
 * PostgreSQL considers a lock file live if any process has its PID, except its parent's, so we write ours. The rest
 * of the file stays, so PostgreSQL still fails if sessions of the dead server use its shared memory.
 */
async function disarmStaleLock({ data, account }: ServerLocation): Promise<void> {
  const [, ...rest] = (await postmasterFile(data)).split('\n')
  if (rest.length === 0) return
  await writePrivate(join(data, 'postmaster.pid'), [process.pid, ...rest].join('\n'), account)
}

/** Creates the database of the URL if it doesn't exist. Stops the server if that fails. */
export async function ensureDatabase(url: string, { home, data }: ServerLocation): Promise<void> {
  // Imported here, because the CLI uses postgres.ts to find the server and shouldn't load a client for that.
  const { Client } = await import('pg')
  const system = new URL(url)
  const name = system.pathname.slice(1)
  system.pathname = '/postgres'
  const client = new Client({ connectionString: system.href })
  try {
    await client.connect()
    const { rowCount } = await client.query('select from pg_database where datname = $1', [name])
    if (!rowCount) await client.query(`create database ${client.escapeIdentifier(name)}`)
  } catch (error) {
    await stopServer(data)
    throw new Error(
      `PostgreSQL in ${home} reported an error: ${errorWords(error)}\nDelete ${home}, ${OWN_SERVER}`,
    )
  } finally {
    await client.end().catch(() => {})
  }
}
