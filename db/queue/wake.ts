/**
 * Wake-ups: a hint to idle workers that a queue has fresh work, so that it starts within milliseconds.
 * Promises: heard after the commit; gathered, at most one statement every few milliseconds; never inside the
 * accept transaction (measured: -43 % commits at 32 clients). Losing one costs a poll interval, nothing more.
 */

import { type Listener, listen } from '../postgres/listen.ts'
import { type Database, notify, type Tx } from '../postgres/pool.ts'
import type { JobName } from './jobs.ts'

const CHANNEL = 'heliograph_jobs'
const GATHER_MS = 5

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
    setTimeout(flush, GATHER_MS)
  }
  return (job) => {
    pending.add(job)
    if (gathering) return
    gathering = true
    setImmediate(flush)
  }
}

/**
 * Wakes once the caller's transaction commits, for work that is rare and made deep inside of it. Commits with such a
 * hint wait for each other: none belongs on the way of an accept.
 */
export const wakeOnCommit = (tx: Tx, job: JobName): Promise<void> => notify(tx, CHANNEL, [job])

/** Wakes at once, for processes that end soon. Never fails: the poll finds what is not heard of. */
export const wakeAtOnce = (database: Database, job: JobName): Promise<void> =>
  notify(database, CHANNEL, [job]).catch(() => {})

/** The receiving side: `wake` runs for each hint, and for every queue after a reconnection. */
export const onWake = (url: string | null, jobs: readonly JobName[], wake: (job: string) => void): Listener =>
  listen(url, CHANNEL, { onPayload: wake, onReconnect: () => jobs.forEach(wake) })
