/**
 * Repeats work while the database is unavailable, for records that must not be lost, such as a provider's response.
 * The work must be idempotent, because a lost connection leaves it unknown whether the commit arrived.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseUnavailable } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'

// Well below the grace period for lost workers' jobs after the database is back (db/queue/boss.ts).
const MAX_PAUSE_MS = 1_000
const LOG_INTERVAL_MS = 10_000

/** @throws the work's other errors. @param onFault is called each time the database was unreachable. */
export async function retryWhileUnavailable<T>(work: () => Promise<T>, log: Log, onFault = () => {}) {
  let logged = Number.NEGATIVE_INFINITY
  for (let pause = 100; ; pause = Math.min(MAX_PAUSE_MS, pause * 2)) {
    try {
      return await work()
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      onFault()
      if (performance.now() - logged > LOG_INTERVAL_MS) {
        logged = performance.now()
        log.warn({ err: error }, 'database unavailable, so results are recorded once it is available again')
      }
      await sleep(pause)
    }
  }
}
