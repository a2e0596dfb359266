/**
 * Gives emails that are still to be delivered a job again: for the operator, for dead letters, for the sweep.
 * Promises: a row that the provider has taken is left alone; a row never has two jobs (its job's id is its own);
 * marks, jobs and events are stored together. Design §7 (Sweep); decisions: requeue.
 */
import { Refusal } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import type { EmailRef } from './emails.sql.ts'
import { insertEmailEvents } from './events.sql.ts'
import { markEmailsRequeued } from './requeue.sql.ts'
import { emailOrRefusal } from './show.ts'
import type { EmailStatus } from './status.ts'

type Requeueing = { tx: Tx; queue: Pick<Producer, 'reenqueue'>; now: Date }

/** Marks those of the emails that the provider has not taken, and tells their timelines. @returns these. */
export async function noteEmailsRequeued(
  { tx, now }: { tx: Tx; now: Date },
  refs: readonly EmailRef[],
): Promise<readonly EmailRef[]> {
  if (refs.length === 0) return []
  const requeued = await markEmailsRequeued(tx, refs, now)
  const event = {
    event_key: `requeued:${now.toISOString()}`,
    kind: 'requeued' as const,
    recipient: null,
    occurred_at: now,
    detail: '',
  }
  if (requeued.length > 0)
    await insertEmailEvents(
      tx,
      requeued.map((ref) => ({ ...ref, ...event })),
    )
  return requeued
}

/** Requeues those of the emails that the provider has not taken. @returns these. */
export async function requeueEmails(
  { tx, queue, now }: Requeueing,
  refs: readonly EmailRef[],
): Promise<readonly EmailRef[]> {
  const requeued = await noteEmailsRequeued({ tx, now }, refs)
  await queue.reenqueue(tx, 'deliver-email', requeued)
  return requeued
}

/** One email, at an operator's wish. @throws Refusal not_found, or bad_request when the provider has taken it. */
export async function requeueEmail(
  { tx, queue, now }: Requeueing,
  teamId: string,
  id: string,
): Promise<{ id: string; status: EmailStatus; requeued_at: string }> {
  const { status, provider_message_id } = await emailOrRefusal(tx, teamId, id)
  const [requeued] = await requeueEmails({ tx, queue, now }, [{ team_id: teamId, email_id: id }])
  if (requeued) return { id, status: 'queued', requeued_at: now.toISOString() }
  const reason = status === 'queued' ? `handed over as ${provider_message_id}` : status
  throw new Refusal('bad_request', `the email is ${reason}; only one that is still queued can be requeued`)
}
