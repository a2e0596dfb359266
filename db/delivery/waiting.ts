/**
 * Why a queued message waits, for an operator's eyes: its next attempt, its last refusal, and any pause in its way.
 * Must not tell of another message's recipient.
 */

import type { Tx } from '../postgres/pool.ts'
import { nextAttempt } from '../queue/jobs.sql.ts'
import type { JobName } from '../queue/jobs.ts'
import { pausedSenders, recipientPauses } from './senders.sql.ts'

/** null when it has no job: it was given up, or is being sent just now. */
export type Waiting = {
  next_attempt_at: string
  attempts: number
  last_refusal: string | null
  /** Numbers, accounts and relays that are paused, until when and why: nothing goes through them, whatever waits. */
  paused_senders: { sender: string; until: string; reason: string | null }[]
  /** The same, where the pause is only about this message's recipient. */
  paused_for_recipient: { sender: string; until: string; reason: string | null }[]
} | null

const REFUSALS = new Set(['deferred', 'unknown', 'gave_up'])

/**
 * @param recipient the message's own, where recipients can be paused.
 * @param events the message's timeline, oldest first.
 */
export async function waitingOf(
  tx: Tx,
  { job, id, recipient, now }: { job: JobName; id: string; recipient?: string; now: Date },
  events: readonly { kind: string; detail: string }[],
): Promise<Waiting> {
  const next = await nextAttempt(tx, job, id)
  if (!next) return null
  const senders = await pausedSenders(tx, now)
  const recipients = recipient === undefined ? [] : await recipientPauses(tx, [recipient], now)
  return {
    next_attempt_at: next.at,
    attempts: next.attempts,
    last_refusal: events.findLast(({ kind }) => REFUSALS.has(kind))?.detail ?? null,
    paused_senders: senders.map(({ key: sender, paused_until: until, pause_reason: reason }) => ({
      sender,
      until,
      reason,
    })),
    paused_for_recipient: recipients.map(({ sender, paused_until: until, reason }) => ({
      sender,
      until,
      reason,
    })),
  }
}
