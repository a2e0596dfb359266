/**
 * Rows of paused_queues: queues that an operator or a restore has paused. On a restored copy that hasn't been checked
 * yet, delivery queues count as paused without a row.
 */

import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'
import { keysOf } from '../validation/keys.ts'
import { JOBS, type JobName, PART_OF } from './jobs.ts'

/** The reason for an automatic pause: the database was restored or copied. */
export const RESTORED = 'restored'

/** The queues that send messages and webhooks. */
export const DELIVERY_QUEUES = keysOf(JOBS).filter((job) => job.startsWith('deliver-'))

const pauseRow = row({
  queue: string(),
  /** Null while it isn't certain that this is a copy. */
  paused_at: string().nullable(),
  /** The actor who paused it. */
  paused_by: string().nullable(),
  reason: string().nullable(),
})
export type QueuePause = InferType<typeof pauseRow>

export async function pausedQueues(tx: Tx): Promise<ReadonlyMap<string, QueuePause>> {
  const rows = await tx.any(sql.prepared('paused_queues', pauseRow)`
    select queue, paused_at, paused_by, reason from paused_queues
    union all
    select d.queue, null, null, ${RESTORED} from unnest(${sql.array(DELIVERY_QUEUES, 'text')}) d (queue)
    where not is_at_home() and not exists (select from paused_queues p where p.queue = d.queue)`)
  const paused = new Map(rows.map((row) => [row.queue, row]))
  // A pause from the CLI of 0.1.0 has no row for the parts of its queue.
  for (const [part, whole] of PART_OF) {
    const pause = paused.get(whole)
    if (pause && !paused.has(part)) paused.set(part, { ...pause, queue: part })
  }
  return paused
}

/** Who pauses it, or the reason for an automatic pause. */
type PauseCause = { paused_by: string } | { reason: typeof RESTORED }

/** Pauses queues. An existing pause stays, but a manual pause replaces an automatic one. */
export async function storePauses(tx: Tx, queues: readonly JobName[], cause: PauseCause, now: Date) {
  const by = 'paused_by' in cause ? cause.paused_by : null
  const reason = 'reason' in cause ? cause.reason : null
  await tx.query(sql.type(object())`
    insert into paused_queues (queue, paused_at, paused_by, reason)
    select queue, ${sql.timestamp(now)}, ${by}, ${reason} from unnest(${sql.array(queues, 'text')}) queue
    on conflict (queue) do update set paused_by = excluded.paused_by, reason = null
    where paused_queues.reason is not null and excluded.reason is null`)
}

export const deletePauses = (tx: Tx, queues: readonly JobName[]) =>
  tx.query(sql.type(object())`delete from paused_queues where queue = any(${sql.array(queues, 'text')})`)

const queueRow = row({ queue: string<JobName>() })

/** Resumes all queues paused for this reason. @returns the queues. */
export async function deletePausesFor(tx: Tx, reason: typeof RESTORED): Promise<JobName[]> {
  const queues = await tx.anyFirst(sql.type(queueRow)`
    delete from paused_queues where reason = ${reason} returning queue`)
  return queues.toSorted()
}
