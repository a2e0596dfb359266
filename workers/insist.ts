/**
 * Recording what a provider has done, through a database that is away for a moment.
 * Promises: what was sent is not sent again because a failover took some seconds. The work must bear being done twice:
 * a lost connection does not tell whether its commit arrived.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseUnavailable } from '../db/postgres/pool.ts'
import type { Log } from '../db/process/log.ts'

/** How long to go on, in milliseconds: within what is left of a job's expiry when its sends have ended. */
const PATIENCE = 30_000
const LONGEST_PAUSE = 2_000

/** Does the work, again and again while the database cannot be reached. @throws whatever else it throws. */
export async function insist<T>(work: () => Promise<T>, log: Log): Promise<T> {
  const end = performance.now() + PATIENCE
  for (let pause = 100; ; pause = Math.min(LONGEST_PAUSE, pause * 2)) {
    try {
      return await work()
    } catch (error) {
      if (!isDatabaseUnavailable(error) || performance.now() > end) throw error
      log.warn({ err: error }, 'the database is away: what was sent is recorded when it is back')
      await sleep(pause)
    }
  }
}
