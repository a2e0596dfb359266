/** Why a queued message waits, for an operator's eyes: its next attempt, its last refusal, and any sender that is paused. */
import type { JobName } from '../jobs.ts'
import type { Tx } from '../pool.ts'
import { pausedSenders } from '../senders/table.ts'
import { nextAttempt } from './table.ts'

/** null when it has no job: it was given up, or is being sent just now. */
export type Waiting = {
  next_attempt_at: string
  attempts: number
  last_refusal: string | null
  /** Numbers, accounts and relays that are paused, until when and why: nothing goes through them, whatever waits. */
  paused_senders: { sender: string; until: string; reason: string | null }[]
} | null

const REFUSALS = new Set(['deferred', 'unknown', 'gave_up'])

/** @param events the message's timeline, oldest first. */
export async function waitingOf(
  tx: Tx,
  { job, id, now }: { job: JobName; id: string; now: Date },
  events: readonly { kind: string; detail: string }[],
): Promise<Waiting> {
  const next = await nextAttempt(tx, job, id)
  if (!next) return null
  const paused = await pausedSenders(tx, now)
  return {
    next_attempt_at: next.at,
    attempts: next.attempts,
    last_refusal: events.findLast(({ kind }) => REFUSALS.has(kind))?.detail ?? null,
    paused_senders: paused.map(({ key, paused_until, pause_reason }) => ({
      sender: key,
      until: paused_until,
      reason: pause_reason,
    })),
  }
}
