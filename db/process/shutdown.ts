/**
 * Stops a process in order and within a time limit, and reports failed starts. SIGTERM, SIGINT and the loss of a
 * listening parent (`npm start`) stop a process once. It exits with 0 when its work is finished or the grace period
 * ends. A second signal exits immediately.
 */
import { flushCompileCache } from 'node:module'
import { RequestError } from '../errors.ts'
import { databaseRejection, isDatabaseUnavailable } from '../postgres/pool.ts'
import { SettingsFault } from './config.ts'
import type { Log } from './log.ts'

const GRACE_MS = 25_000
/** The part of the grace period for work in flight. The rest is for recording it and closing connections. */
export const DRAIN_MS = 23_500

/**
 * One Ctrl-C may reach a process twice, through the terminal and through npm. Signals within this time count once.
 */
const ECHO_MS = 1_000
/** The exit code after a second signal. */
const CUT_OFF = 1

/** Sent to the parent when the process is up: its port, if any. */
export type Up = { port?: number }

/**
 * Runs `stop` at the first SIGTERM, SIGINT or disconnect of the parent process, then exits. Sends `up` to a parent
 * with an IPC channel. Flushes the compile cache now, because a killed process wouldn't (preload.js).
 */
export function stopOnSignal(log: Log, stop: () => Promise<void>, up: Up = {}): void {
  let askedAt: number | null = null
  const shutdown = async (): Promise<void> => {
    if (askedAt !== null) return
    askedAt = performance.now()
    log.info('draining')
    setTimeout(() => process.exit(0), GRACE_MS).unref()
    await stop().catch((error: unknown) => log.error({ err: error }, 'failed to stop cleanly'))
    process.exit(0)
  }
  const signalled = (): void => {
    if (askedAt === null || performance.now() - askedAt < ECHO_MS) return void shutdown()
    log.warn('second signal received, exiting immediately')
    process.exit(CUT_OFF)
  }
  process.on('SIGTERM', signalled)
  process.on('SIGINT', signalled)
  process.on('disconnect', shutdown)
  flushCompileCache()
  process.send?.(up)
}

/** Explains a failed start if the cause is known, or null. */
export function startFault(error: unknown): string | null {
  if (error instanceof SettingsFault) return error.message
  if (error instanceof RequestError) return `cannot start: ${error.message}`
  const refused = databaseRejection(error)
  if (refused !== null) return `cannot start: ${refused}`
  if (!isDatabaseUnavailable(error)) return null
  const said = error instanceof Error ? error.message : ''
  return `cannot start: the database is unreachable (${said || 'no response'})`
}

/** Reports why a process could not start, in one line where we know the cause, and ends it with exit code 1. */
export function failToStart(error: unknown): void {
  const stack = error instanceof Error ? error.stack : String(error)
  process.stderr.write(`${startFault(error) ?? stack}\n`)
  process.exit(1)
}
