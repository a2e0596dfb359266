/**
 * Reports the queue's errors to the log. Each is logged once per interval, and a lost database once for all loops.
 */
import { isDatabaseUnavailable } from '../postgres/pool.ts'
import { IN_LOOP } from './pgboss.sql.ts'

/** How long the same error isn't logged again, in milliseconds. */
const QUIET_MS = 10_000

/**
 * pg-boss reports errors as plain objects, repeatedly. An outage of the database is one error, whatever its message.
 */
export function faultReporter(onError: (error: Error) => void): (fault: unknown) => void {
  const lastReported = new Map<string, number>()
  return (fault) => {
    const { message, code = '', queue } = fault as { message?: string; code?: string; queue?: string }
    const words = (message || code || String(fault)).split(IN_LOOP, 1).join()
    const error = Object.assign(new Error(words), code === '' ? {} : { code })
    const lost = isDatabaseUnavailable(error)
    const key = lost ? 'database unavailable' : words
    const now = performance.now()
    if (now - (lastReported.get(key) ?? -QUIET_MS) < QUIET_MS) return
    lastReported.set(key, now)
    if (!lost && fault instanceof Error && message) return onError(fault)
    onError(lost ? error : Object.assign(error, { queue }))
  }
}
