/**
 * Wake-ups: a hint to idle workers that a queue has fresh work, so that it starts within milliseconds.
 * Promises: sent after the commit and gathered, at most one statement every few milliseconds; never inside the
 * accept transaction (measured: -43 % commits at 32 clients). Losing one costs a poll interval, nothing more.
 */

import { type Listener, listen } from '../postgres/listen.ts'
import { type Database, notify } from '../postgres/pool.ts'
import type { JobName } from './jobs.ts'

const CHANNEL = 'heliograph_jobs'
const GATHER = 5

export type Waker = (job: JobName) => void

/**
 * Makes the sending side: a first hint goes at once, those behind it together. Errors are dropped: the poll finds
 * it.
 */
export function createWaker(database: Database): Waker {
  const pending = new Set<JobName>()
  let gathering = false
  const flush = (): void => {
    gathering = pending.size > 0
    if (!gathering) return
    const jobs = [...pending]
    pending.clear()
    notify(database, CHANNEL, jobs).catch(() => {})
    setTimeout(flush, GATHER)
  }
  return (job) => {
    pending.add(job)
    if (gathering) return
    gathering = true
    setImmediate(flush)
  }
}

/** The receiving side: `wake` runs for each hint, and for every queue after a reconnection. */
export const onWake = (url: string | null, jobs: readonly JobName[], wake: (job: string) => void): Listener =>
  listen(url, CHANNEL, { onPayload: wake, onReconnect: () => jobs.forEach(wake) })
