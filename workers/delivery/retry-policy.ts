/**
 * Decides how a delivery ends and when it is retried, for every channel, from the outcomes of one attempt and the
 * message's history. Pure. A sender's outage never counts against a message. A message fails after 24 h of attempts, or
 * after three lost responses, because each of those may have arrived (DECISIONS: Temporary failures, Lost responses).
 */
import { retryPause } from '../../db/delivery/retry-pause.ts'
import { DELIVERY_DEADLINE_MS, type End } from '../../db/queue/jobs.ts'
import type { Outcome, SenderTrouble } from '../providers/provider.ts'

export type AttemptOutcome = {
  kind: Outcome['kind']
  detail: string
  wait_seconds?: number
  trouble?: SenderTrouble
  /** The start of the response if it may be about the sender, and the recipient's domain. */
  key?: string
  domain?: string
}

/**
 * How often a message was deferred or got no response since its attempts started. `since` is the first time of
 * either, moved later by the time it couldn't be attempted because its sender, queue, team or broadcast was paused,
 * or null.
 */
export type AttemptHistory = { since: string | null; deferrals: number; unknowns: number }

/** The context that decides an end, in addition to outcomes and history. */
export type VerdictContext = {
  now: Date
  /** How long a report may still make another attempt unnecessary after a lost response, in seconds. */
  unknown_wait: number
  /** How long the sender stays paused, in seconds. An earlier check would be useless. */
  sender_pause: number
  /** From 0 to 1. Spreads out messages that were deferred together. */
  spread: number
}

/** After this many attempts without a response a message waits for manual action or a report. */
const MAX_UNKNOWNS = 3
/** The minimum wait of a message that waits for its sender, in seconds. */
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

export type PolicyContext = {
  /** When a policy rejection last delayed this message, or null. */
  held_at: Date | null
  /** When the sender's latest accepted message was started. */
  accepted_at: Date | null
}

/** How long a message of an unknown identity waits, in seconds. */
const IDENTITY_WAIT_S = 600

/**
 * Decides whether a policy rejection concerns the message. It does if the attempt had accepted recipients, or if the
 * message was delayed before and other email has been accepted since then. Otherwise our configuration may be wrong.
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
