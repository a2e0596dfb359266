/**
 * Repeats work while the database is unavailable, for what must not be lost: the record of what a provider has done.
 * Promises: while this process lives, a message is not sent again because the database was away, however long. The
 * work must be safe to repeat: after a lost connection nobody knows whether the commit arrived.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseUnavailable } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'

// Well within the time that dead workers' jobs are left alone after the database is back (db/queue/boss.ts).
const MAX_PAUSE_MS = 1_000
const LOG_INTERVAL_MS = 10_000

/**
 * Does the work, and repeats it while the database cannot be reached. @throws the work's other errors.
 * @param onFault is called each time that it could not be reached.
 */
export async function retryWhileUnavailable<T>(
  work: () => Promise<T>,
  log: Log,
  onFault = () => {},
): Promise<T> {
  let logged = Number.NEGATIVE_INFINITY
  for (let pause = 100; ; pause = Math.min(MAX_PAUSE_MS, pause * 2)) {
    try {
      return await work()
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      onFault()
      if (performance.now() - logged > LOG_INTERVAL_MS) {
        logged = performance.now()
        log.warn({ err: error }, 'database unavailable; results will be recorded when it returns')
      }
      await sleep(pause)
    }
  }
}
