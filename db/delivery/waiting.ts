/**
 * Explains why an unfinished message waits: its state, its next attempt, the provider's last response and any pauses.
 * Reveals nothing about another message's recipient or another channel's senders.
 */

import { rampReached } from '../accounts/domains/ramp.ts'
import { bulkPausedBecause } from '../accounts/teams/reputation.ts'
import { deliveryFrom, sendsFor } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { openJob } from '../queue/jobs.sql.ts'
import { pausedQueues } from '../queue/pauses.sql.ts'
import type { DeliveryState } from './requeue.sql.ts'
import { pausedSenders, recipientPauses, type SenderPause } from './senders/senders.sql.ts'
import { DELAY_EVENTS } from './waiting.sql.ts'

/**
 * - `not_taken_yet`: due, and no worker has claimed it.
 * - `in_flight`: a worker has claimed it.
 * - `deferred`: the next attempt is at `next_attempt_at`.
 * - `failed`: no more attempts until it is requeued or a report arrives.
 * - `scheduled`: waits for `next_attempt_at`, regardless of other problems.
 * - `suspended`: its team is suspended. It is sent after the resume.
 * - `paused`: bulk email of its team is paused. It is sent after the resume.
 * - `lost`: it has no job. The sweep finds it within an hour.
 */
type WaitingState =
  | 'scheduled'
  | 'suspended'
  | 'paused'
  | 'not_taken_yet'
  | 'in_flight'
  | 'deferred'
  | 'failed'
  | 'lost'

export type Waiting = {
  state: WaitingState
  /** The reason for `suspended` or `paused`, or that its domain’s daily limit is reached. Otherwise null. */
  reason: string | null
  /** null unless it is deferred or due. */
  next_attempt_at: string | null
  /** Attempts since it was accepted or requeued. */
  attempts: number
  last_response: string | null
  /** True if its team is suspended, so that none of its messages is sent. */
  team_suspended: boolean
  /** True if the queue is paused. The reason if no operator has paused it. */
  queue_paused: boolean
  queue_pause_reason: string | null
  /** Paused numbers, accounts and relays, with the end and reason of each pause. */
  paused_senders: readonly SenderPause[]
  /** The same, where the pause is only about this message's recipient. */
  paused_for_recipient: readonly SenderPause[]
}

const TRIES = new Set(['deferred', 'unknown'])

type TimelineEvent = { kind: string; occurred_at: string; detail: string }

/**
 * @param state from `deliveryState`. @param recipient its recipient, if recipients can be paused.
 * @param sender its sender, if it has its own. @param events its timeline, oldest first.
 * @returns null if its delivery has ended.
 */
export async function describeWaiting(
  tx: Tx,
  {
    id,
    state,
    recipient,
    sender,
    now,
  }: { id: string; state: DeliveryState; recipient?: string; sender?: string; now: Date },
  events: readonly TimelineEvent[],
): Promise<Waiting | null> {
  if (!state || !(state.unfinished || state.due_at !== null || state.expired)) return null
  const job = await openJob(tx, state.job, id)
  const from = deliveryFrom(state.job)
  const senders = (await pausedSenders(tx, { key: sender, number: state.sender })).filter((each) =>
    sendsFor(from, each.sender),
  )
  const recipients = recipient === undefined ? [] : await recipientPauses(tx, [recipient])
  const pause = (await pausedQueues(tx)).get(state.job)
  const since = events.slice(events.findLastIndex(({ kind }) => kind === 'requeued') + 1)
  return {
    ...findState(job, state, now),
    attempts: new Set(since.filter(({ kind }) => TRIES.has(kind)).map((event) => event.occurred_at)).size,
    last_response:
      events.findLast(({ kind }) => DELAY_EVENTS.some((refusal) => refusal === kind))?.detail ?? null,
    team_suspended: state.suspended,
    queue_paused: pause !== undefined,
    queue_pause_reason: pause?.reason ?? null,
    paused_senders: senders,
    paused_for_recipient: recipients.map(({ sender, paused_until: until, reason }) => ({
      sender,
      until,
      reason,
    })),
  }
}

type OpenJob = { active: boolean; at: string; dead: boolean } | null

/** Returns the first state that applies. */
function findState(
  job: OpenJob,
  { due_at, suspended, given_up, bulk_pause, ramp }: NonNullable<DeliveryState>,
  now: Date,
): Pick<Waiting, 'state' | 'reason' | 'next_attempt_at'> {
  const reason = null
  const hasCome = (time: string) => Date.parse(time) <= now.getTime()
  if (due_at !== null && !(suspended && hasCome(due_at)))
    return { state: 'scheduled', reason, next_attempt_at: due_at }
  if (suspended) return { state: 'suspended', reason: 'the team is suspended', next_attempt_at: null }
  if (bulk_pause !== null)
    return { state: 'paused', reason: bulkPausedBecause(bulk_pause), next_attempt_at: null }
  const next_attempt_at = job?.active === false ? job.at : null
  if (job === null || job.dead) return { state: job || given_up ? 'failed' : 'lost', reason, next_attempt_at }
  if (job.active) return { state: 'in_flight', reason, next_attempt_at }
  if (hasCome(job.at)) return { state: 'not_taken_yet', reason, next_attempt_at }
  return { state: 'deferred', reason: ramp && rampReached(ramp), next_attempt_at }
}
