/**
 * What the log gets of the queue's faults.
 * Promises: each once in a while; a lost database once for all of pg-boss's loops, whatever the words.
 */
import { isDatabaseUnavailable } from '../postgres/pool.ts'
import { IN_LOOP } from './pgboss.sql.ts'

/** How long the same fault is not logged again, in milliseconds: every poll of a lost database meets it. */
const QUIET_MS = 10_000

/**
 * pg-boss reports faults as plain objects, and over and over. A lost database is one fault, whichever loop meets it
 * and whatever the words.
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
