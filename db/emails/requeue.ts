/**
 * Gives emails that are still to be delivered a job again: for the operator, for dead letters, for the sweep.
 * Promises: a row that the provider has taken is left alone; a row never has two jobs (its job's id is its own);
 * marks, jobs and events are stored together. Design §7 (Sweep); decisions: requeue.
 */
import { Refusal } from '../errors.ts'
import type { Tx } from '../pool.ts'
import type { Producer } from '../queue.ts'
import { markRequeued } from './requeue/table.ts'
import { emailOrRefusal } from './show.ts'
import type { EmailStatus } from './status.ts'
import { type EmailRef, insertEvents } from './table.ts'

/** Requeues those of the emails that the provider has not taken. @returns these. */
export async function requeueEmails(
  tx: Tx,
  queue: Pick<Producer, 'reenqueue'>,
  refs: readonly EmailRef[],
  now: Date,
): Promise<readonly EmailRef[]> {
  if (refs.length === 0) return []
  const requeued = await markRequeued(tx, refs, now)
  if (requeued.length === 0) return []
  await queue.reenqueue(tx, 'deliver-email', requeued)
  await insertEvents(
    tx,
    requeued.map((ref) => ({
      ...ref,
      event_key: `requeued:${now.toISOString()}`,
      kind: 'requeued' as const,
      recipient: null,
      occurred_at: now,
      detail: '',
    })),
  )
  return requeued
}

/** One email, at an operator's wish. @throws Refusal not_found, or bad_request when the provider has taken it. */
export async function requeueEmail(
  { tx, now }: { tx: Tx; now: Date },
  queue: Pick<Producer, 'reenqueue'>,
  teamId: string,
  id: string,
): Promise<{ id: string; status: EmailStatus; requeued_at: string }> {
  const { status, provider_message_id } = await emailOrRefusal(tx, teamId, id)
  const [requeued] = await requeueEmails(tx, queue, [{ team_id: teamId, email_id: id }], now)
  if (requeued) return { id, status: 'queued', requeued_at: now.toISOString() }
  const reason = status === 'queued' ? `handed over as ${provider_message_id}` : status
  throw new Refusal('bad_request', `the email is ${reason}; only one that is still queued can be requeued`)
}
