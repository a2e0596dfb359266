/**
 * The job queue for those who store jobs: `enqueue(tx, job, payloads)`, or beside their rows, in the same statement.
 * Promises: a job is stored by the caller's transaction or not at all; a job's id is its row's id, so a row never has
 * two jobs. It has no connections of its own, and never loads pg-boss.
 */
import { onCommit, type Tx } from '../postgres/pool.ts'
import { takeDeadLetters } from './dead-letters.sql.ts'
import { createLines, placesOfReturning, priorityOf } from './fair-queue.ts'
import { asRelation, insertingJobs, insertJobs, type NewJob } from './insert.sql.ts'
import { delayJobs, deleteEndedJobs, deleteIdleJobs } from './jobs.sql.ts'
import { groupOf, JOBS, type JobName, type Payload, type SharedJob } from './jobs.ts'
import type { Waker } from './wake.ts'

/** Jobs for a queue that teams share, with the place of each in its line. */
export type Placed<J extends SharedJob = SharedJob> = {
  [K in J]: { job: K; payloads: readonly Payload<K>[]; places: readonly number[] }
}[J]

/** What the API, the CLI and the workers store jobs by. */
export type Producer = {
  /**
   * Stores jobs in the caller's transaction, behind what the queue's line has reached. A row whose job is still stored
   * keeps that one. @returns how many jobs were stored.
   */
  enqueue<J extends JobName>(tx: Tx, job: J, payloads: readonly Payload<J>[]): Promise<number>
  /** A part of a statement in the caller's transaction that does so: it returns a row for each job that it stored. */
  storing(tx: Tx, placed: readonly Placed[]): ReturnType<typeof insertingJobs>
  /** What the queue's line has reached (fair-queue.ts), or the line of its group, where each group has one. */
  reached(tx: Tx, job: SharedJob, group?: string | null): Promise<number>
  /**
   * As `enqueue`, in place of whatever job or dead letter the rows still have, but for one that is running.
   * @param seconds for how long each of them waits; at once without it.
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

/** Which dead letters: the oldest of those seen then, with this reason, or with any when it is null. */
type DeadLetters = { seen: string; reason: string | null; limit: number }

const jobId = <J extends JobName>(job: J, payload: Payload<J>): string =>
  payload[JOBS[job].id as keyof Payload<J>] as string

const jobIds = <J extends JobName>(job: J, payloads: readonly Payload<J>[]): string[] =>
  payloads.map((payload) => jobId(job, payload))

/** @param places none where nobody stands in line. */
const jobsOf = <J extends JobName>(
  name: J,
  payloads: readonly Payload<J>[],
  places: readonly number[],
): NewJob[] =>
  payloads.map((data, index) => ({
    ...{ name, id: jobId(name, data), data, group_id: groupOf(name, data) },
    priority: priorityOf(places[index] ?? 0),
  }))

/** @param wake hints idle workers, once the transaction that stored jobs has committed. */
export function createProducer(wake?: Waker, lines = createLines()): Producer {
  const enqueue: Producer['enqueue'] = async (tx, job, payloads) => {
    if (payloads.length === 0) return 0
    const places = await placesOfReturning(lines, tx, job, payloads)
    const count = await insertJobs(tx, jobsOf(job, payloads, places))
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
        asRelation(placed.flatMap(({ job, payloads, places }) => jobsOf(job, payloads, places))),
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
      const payloads = await takeDeadLetters(tx, job, letters)
      if (payloads.length === 0) return payloads
      await deleteEndedJobs(tx, job, jobIds(job, payloads))
      await enqueue(tx, job, payloads)
      return payloads
    },
  }
}
