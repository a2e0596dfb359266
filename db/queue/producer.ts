/**
 * Stores jobs: `enqueue(tx, job, payloads)`, or in the statement that stores their rows. A job is stored by the
 * caller's transaction or not at all. A job's ID is its row's ID, so a row never has two jobs. Never loads pg-boss.
 */
import { onCommit, type Tx } from '../postgres/pool.ts'
import { removeDeadLetters } from './dead-letters.sql.ts'
import { createLines, positionsOfReturning, toPriority } from './fair-queue.ts'
import { asRelation, insertingJobs, insertJobs } from './insert.sql.ts'
import { delayJobs, deleteEndedJobs, deleteIdleJobs } from './jobs.sql.ts'
import { JOBS, type JobName, type Payload, type SharedJob, toGroup } from './jobs.ts'
import type { Waker } from './wake.ts'

/** Jobs for a queue that teams share, with their positions. */
export type Placed<J extends SharedJob = SharedJob> = {
  [K in J]: { job: K; payloads: readonly Payload<K>[]; places: readonly number[] }
}[J]

/** How the API, the CLI and the workers store jobs. */
export type Producer = {
  /**
   * Stores jobs in the caller's transaction, after the position that the queue has reached. A row that already has a
   * job keeps it. @returns how many jobs were stored.
   */
  enqueue<J extends JobName>(tx: Tx, job: J, payloads: readonly Payload<J>[]): Promise<number>
  /** Returns a part of a statement in the caller's transaction that stores jobs. It returns a row for each. */
  storing(tx: Tx, placed: readonly Placed[]): ReturnType<typeof insertingJobs>
  /**
   * Returns the position that the queue has reached (fair-queue.ts), or that of the group if groups have their own
   * order.
   */
  reached(tx: Tx, job: SharedJob, group?: string | null): Promise<number>
  /**
   * Does the same as `enqueue`, but replaces the rows' jobs and dead letters, except running ones.
   * @param seconds delay of each job.
   */
  reenqueue<J extends JobName>(
    tx: Tx,
    job: J,
    payloads: readonly Payload<J>[],
    seconds?: readonly number[],
  ): Promise<number>
  /** Moves dead letters of a queue back. @returns their payloads. */
  redrive<J extends JobName>(tx: Tx, job: J, letters: DeadLetters): Promise<Payload<J>[]>
}

/** Selects dead letters: the oldest that existed at `seen`, with this reason (null: any). */
type DeadLetters = { seen: string; reason: string | null; limit: number }

const jobId = <J extends JobName>(job: J, payload: Payload<J>): string =>
  payload[JOBS[job].id as keyof Payload<J>] as string

const jobIds = <J extends JobName>(job: J, payloads: readonly Payload<J>[]): string[] =>
  payloads.map((payload) => jobId(job, payload))

/** @param places none if the queue has no order. */
const toJobs = <J extends JobName>(name: J, payloads: readonly Payload<J>[], places: readonly number[]) =>
  payloads.map((data, index) => ({
    ...{ name, id: jobId(name, data), data, group_id: toGroup(name, data) },
    priority: toPriority(places[index] ?? 0),
  }))

/** @param wake hints idle workers, once the transaction that stored jobs has committed. */
export function createProducer(wake?: Waker, lines = createLines()): Producer {
  const enqueue: Producer['enqueue'] = async (tx, job, payloads) => {
    if (payloads.length === 0) return 0
    const places = await positionsOfReturning(lines, tx, job, payloads)
    const count = await insertJobs(tx, toJobs(job, payloads, places))
    if (wake && count > 0) onCommit(tx, () => wake(job))
    return count
  }
  return {
    enqueue,
    storing(tx, placed) {
      for (const { job, places } of placed) {
        lines[job].given(Math.max(...places))
        if (wake) onCommit(tx, () => wake(job))
      }
      return insertingJobs(
        asRelation(placed.flatMap(({ job, payloads, places }) => toJobs(job, payloads, places))),
      )
    },
    reached: (tx, job, group) => lines[job].reached(tx, group),
    async reenqueue(tx, job, payloads, seconds) {
      if (payloads.length === 0) return 0
      const ids = jobIds(job, payloads)
      await deleteIdleJobs(tx, job, ids)
      const count = await enqueue(tx, job, payloads)
      if (seconds) await delayJobs(tx, job, { ids, seconds })
      return count
    },
    async redrive(tx, job, letters) {
      const payloads = await removeDeadLetters(tx, job, letters)
      if (payloads.length === 0) return payloads
      await deleteEndedJobs(tx, job, jobIds(job, payloads))
      await enqueue(tx, job, payloads)
      return payloads
    },
  }
}
