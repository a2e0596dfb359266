/**
 * Runs programs for the embedded PostgreSQL as another user, writes files for it, and finds and stops the server of a
 * data directory. Never mistakes another process for the server.
 */
import { execFile } from 'node:child_process'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { platform } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/** The user that runs PostgreSQL. Empty for our own user. */
export type ProcessUser = { uid?: number; gid?: number }

/** The end of every error message: a solution that always works. */
export const OWN_SERVER = 'or set DATABASE_URL to use your own PostgreSQL server'
// PGDATA, PGPORT and locales of the shell would change what PostgreSQL does.
export const ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
}
// Fast shutdown, immediate shutdown (recovers at the next start), kill.
const STEPS = [
  { signal: 'SIGINT', wait: 30_000 },
  { signal: 'SIGQUIT', wait: 10_000 },
  { signal: 'SIGKILL', wait: 10_000 },
] as const

export const isRoot = () => process.getuid?.() === 0
/** Turns a promise into true if it resolves, and false if it rejects: `promise.then(...kept)`. */
export const kept = [() => true, () => false] as const

export function run(command: string, args: string[], account: ProcessUser = {}): Promise<string> {
  const options = { ...account, env: ENVIRONMENT, cwd: '/' }
  return promisify(execFile)(command, args, options).then(({ stdout }) => stdout.trim())
}

/** Runs a shell command as the user, with `path` as $1, to test the user's permissions. */
export const permits = (account: ProcessUser, path: string, line: string) =>
  run('/bin/sh', ['-c', line, 'sh', path], account).then(...kept)

/** Replaces a file atomically. Only `owner` can read it. Never follows a link at that path. */
export async function writePrivate(file: string, text: string, owner: ProcessUser): Promise<void> {
  const fresh = `${file}.new`
  await rm(fresh, { force: true })
  const handle = await open(fresh, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    if (isRoot() && owner.uid !== undefined && owner.gid !== undefined)
      await handle.chown(owner.uid, owner.gid)
  } finally {
    await handle.close()
  }
  await rename(fresh, file)
}

/** The server's lock file: PID, data directory and more. Line 8 is its status. */
export const postmasterFile = (data: string) => readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')

/**
 * True if this process is the server of `data`. The command line distinguishes it from a process that reused the PID,
 * from the server of another checkout that was copied here, and from a zombie.
 */
async function serves(pid: number, data: string): Promise<boolean> {
  const command =
    platform() === 'linux'
      ? (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
      : await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(() => '')
  return command.includes(` -D ${data} `)
}

/** Returns the PID of the server that runs on `data`, or null. */
export async function livePostmaster(data: string): Promise<number | null> {
  const pid = Number.parseInt(await postmasterFile(data), 10)
  return pid > 1 && (await serves(pid, data)) ? pid : null
}

/** Sends a signal, unless the process has just ended. */
function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** Stops the server that runs on `data`, if any, with increasing force. */
export async function stopServer(data: string): Promise<void> {
  const pid = await livePostmaster(data)
  if (pid === null) return
  for (const { signal, wait } of STEPS) {
    signalProcess(pid, signal)
    for (const deadline = Date.now() + wait; Date.now() < deadline; await sleep(20)) {
      if (!(await serves(pid, data))) return
    }
  }
  throw new Error(`PostgreSQL (pid ${pid}) isn't stopping. Kill it, then start again`)
}
