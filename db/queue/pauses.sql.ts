/** Rows of paused_queues: queues that an operator has stopped. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import type { JobName } from './jobs.ts'

const queueRow = object({ queue: string().defined() })

/** The queues that are paused. */
export async function pausedQueues(tx: Tx): Promise<Set<string>> {
  const rows = await tx.any(sql.prepared('paused_queues', queueRow)`select queue from paused_queues`)
  return new Set(rows.map(({ queue }) => queue))
}

/** Pauses a queue; one that is paused stays so. */
export async function storePause(tx: Tx, queue: JobName, now: Date): Promise<void> {
  await tx.query(sql.type(object())`
    insert into paused_queues (queue, paused_at) values (${queue}, ${sql.timestamp(now)}) on conflict do nothing`)
}

/** Resumes a queue. */
export async function deletePause(tx: Tx, queue: JobName): Promise<void> {
  await tx.query(sql.type(object())`delete from paused_queues where queue = ${queue}`)
}
