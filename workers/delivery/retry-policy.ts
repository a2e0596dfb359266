/**
 * Decides how a delivery ends and when it is tried again, for every channel: outcomes of one try and the message's
 * past → the end of its job.
 * Pure. Promises: a sender's trouble never counts against a message, however long it lasts. A message is given up
 * after 24 h of tries, or after three lost answers, because each of those may have arrived (DECISIONS: Temporary
 * failures, Lost responses). Must not know a channel or a provider.
 */
import { retryPause } from '../../db/delivery/retry-pause.ts'
import { DELIVERY_DEADLINE_MS, type End } from '../../db/queue/jobs.ts'
import type { Outcome, SenderTrouble } from '../providers/provider.ts'

/** An outcome, as far as it decides how the delivery ends. */
export type AttemptOutcome = {
  kind: Outcome['kind']
  detail: string
  wait_seconds?: number
  trouble?: SenderTrouble
  /** What the response begins with, if it may be about the sender; and the recipient's domain. */
  key?: string
  domain?: string
}

/**
 * What has come of a message since its tries count: how often it was put off, or left unanswered. `since` is its first
 * refusal, later by as long as it could not be tried because its sender, queue, team or broadcast stood still.
 */
export type AttemptHistory = { since: string | null; deferrals: number; unknowns: number }

/** What an end depends on beside outcomes and past. */
export type VerdictContext = {
  now: Date
  /** How long a report may still spare another try after an answer was lost, in seconds. */
  unknown_wait: number
  /** How long the sender stays paused, in seconds: looking again before that is no use. */
  sender_pause: number
  /** From 0 to 1: spreads out messages that were put off together. */
  spread: number
}

/** After this many tries without an answer a message waits for a person, or for a report. */
const MAX_UNKNOWNS = 3
/** A message that waits for its sender looks again after this long at least, in seconds. */
const MIN_SNOOZE_S = 1

export function nextStep(
  outcomes: readonly AttemptOutcome[],
  history: AttemptHistory,
  { now, unknown_wait, sender_pause, spread }: VerdictContext,
): End {
  const of = (kind: AttemptOutcome['kind']) => outcomes.filter((outcome) => outcome.kind === kind)
  const [unknown] = of('unknown')
  if (unknown !== undefined) {
    if (history.unknowns + 1 >= MAX_UNKNOWNS) {
      const reason = `no response after ${MAX_UNKNOWNS} attempts, so it may have arrived: ${unknown.detail}`
      return { end: 'given_up', reason }
    }
    return { end: 'again', seconds: Math.max(unknown_wait, unknown.wait_seconds ?? 0) }
  }
  const [deferred] = of('deferred')
  if (deferred !== undefined) {
    const waits = of('deferred').flatMap(({ wait_seconds }) => wait_seconds ?? [])
    const wait_seconds = waits.length === 0 ? undefined : Math.max(...waits)
    const { since, deferrals } = history
    const isOverdue = since !== null && now.getTime() - Date.parse(since) > DELIVERY_DEADLINE_MS
    if (isOverdue) return { end: 'given_up', reason: deferred.detail }
    return { end: 'again', seconds: retryPause(deferrals, wait_seconds, spread) }
  }
  const held = of('sender').length > 0 || of('policy').length > 0
  return held ? { end: 'snoozed', seconds: Math.max(MIN_SNOOZE_S, sender_pause) } : { end: 'completed' }
}

/** What is known when a provider refuses a recipient or an identity by policy. */
export type PolicyContext = {
  /** When this message was held back for it before; null when it never was. */
  held_at: Date | null
  /** When a message was begun that the same sender's provider has taken. */
  accepted_at: Date | null
}

/** How long an identity that the provider does not know waits, in seconds. */
const IDENTITY_WAIT_S = 600

/**
 * Decides whose fault a refusal by policy is. It is the message's when others of the same attempt were taken, or when
 * it was held back before and other mail has been taken since. Otherwise nothing changes: our set-up may be at fault.
 */
export function judgePolicy(
  outcomes: ReadonlyMap<string, Outcome>,
  { held_at, accepted_at }: PolicyContext,
): ReadonlyMap<string, Outcome> {
  const amongAccepted = [...outcomes.values()].some(({ kind }) => kind === 'accepted')
  const takenSince = held_at !== null && accepted_at !== null && accepted_at > held_at
  if (!amongAccepted && !takenSince) return outcomes
  return new Map(
    [...outcomes].map(([recipient, outcome]): [string, Outcome] => {
      if (outcome.kind !== 'policy') return [recipient, outcome]
      const { blames, detail } = outcome
      if (blames === 'recipient') return [recipient, { kind: 'refused', detail, effect: 'none' }]
      return [recipient, { kind: 'deferred', detail, wait_seconds: IDENTITY_WAIT_S }]
    }),
  )
}
