/**
 * Enqueues scheduled messages that are due, every two seconds, in one transaction per batch. Every worker does this,
 * whatever its queues. Rows that one worker has locked are skipped by the others.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { releaseAll } from '../db/delivery/schedule.ts'
import { isDatabaseUnavailable } from '../db/postgres/pool.ts'
import type { WorkerDeps } from './deps.ts'

/** How often to look, in milliseconds. */
const RELEASE_INTERVAL_MS = 2_000

type Deps = Pick<WorkerDeps, 'database' | 'queue' | 'log'>

/** Starts checking. @returns a function that stops it after the current batch. */
export function startScheduler(deps: Deps): { drain(): Promise<void> } {
  const closing = new AbortController()
  const looking = (async () => {
    while (!closing.signal.aborted) {
      try {
        await releaseAll(deps, closing.signal)
      } catch (error) {
        if (!isDatabaseUnavailable(error))
          deps.log.error({ err: error }, 'failed to enqueue scheduled messages')
      }
      await sleep(RELEASE_INTERVAL_MS, undefined, { signal: closing.signal }).catch(() => {})
    }
  })()
  return {
    async drain() {
      closing.abort()
      await looking
    },
  }
}
