/** Runs the programs of a test run. A stopped program stops everything that it started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { TestServer } from './database.ts'

export const ROOT = join(import.meta.dirname, '../..')
export const MODULES = join(ROOT, 'node_modules')
const KILL_AFTER_MS = 10_000
/** Modules that each test process loads first. */
const PRELOADS = ['without-hooks.ts', 'database-socket.ts']
/** Debian's folders of nginx and pgbouncer. They are in PATH only for root. */
const SYSTEM_PROGRAMS = ['/usr/local/sbin', '/usr/sbin']

export type Printer = (text: string) => void

/**
 * Returns the environment of test processes.
 * @param cache the folder for compiled modules, shared by tens of processes.
 */
export function testEnvironment(server: TestServer | null, cache: string): Record<string, string> {
  const preloads = PRELOADS.map((file) => `--import=${pathToFileURL(join(ROOT, 'test/support', file))}`)
  return {
    ...(server && { DATABASE_URL: server.url, TEST_DATABASE_PREFIX: server.prefix }),
    ...(server?.socket && { TEST_DATABASE_SOCKET: server.socket }),
    NODE_COMPILE_CACHE: cache,
    NODE_OPTIONS: [process.env.NODE_OPTIONS ?? '', ...preloads].join(' '),
  }
}

/** Signals a program and everything that it started, as a process group. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid) process.kill(-child.pid, signal)
  } catch {
    // All processes of the group have ended.
  }
}

/** Runs a program of node_modules/.bin, passes each line that it prints, and returns its exit code. */
export async function program(run: { stop: AbortSignal }, argv: string[], out: Printer, err = out, env = {}) {
  if (run.stop.aborted) return 1
  const [name = '', ...args] = argv
  const path = [dirname(process.execPath), process.env.PATH, ...SYSTEM_PROGRAMS].join(delimiter)
  const child = spawn(join(MODULES, '.bin', name), args, {
    cwd: ROOT,
    env: { ...process.env, PATH: path, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  createInterface({ input: child.stdout }).on('line', out)
  createInterface({ input: child.stderr }).on('line', err)
  const stop = async () => {
    signalGroup(child, 'SIGTERM')
    await sleep(KILL_AFTER_MS, undefined, { ref: false })
    signalGroup(child, 'SIGKILL')
  }
  run.stop.addEventListener('abort', stop)
  // Ends the remaining processes of a test, because its pipes only close after that.
  child.once('exit', () => signalGroup(child, 'SIGKILL'))
  const code = await new Promise<number>((resolve) => {
    child.once('close', (status) => resolve(status ?? 1))
    child.once('error', (error) => {
      err(`${name}: ${error.message}`)
      resolve(1)
    })
  })
  run.stop.removeEventListener('abort', stop)
  return code
}
