/** The result of reading a raw report: neutral events for the code in db/ that applies them. */

import type { ReportedEvent } from '../../db/messages/apply-reports.ts'

/**
 * How long a provider that rejects our configuration is paused, in seconds, as after a response (circuit-breaker.ts).
 */
const SENDER_PAUSE_S = 30

/** Returns the effect of a verified report about our configuration on its sender, which equals that of a response. */
export const pausedBy = (
  sender: string,
  { detail, occurred_at }: { detail: string; occurred_at: Date },
): ReportedEvent => ({ channel: 'sender', sender, seconds: SENDER_PAUSE_S, reason: detail, occurred_at })

export type RawReport = { body: Buffer; received_at: Date }

/** Thrown for a report without events that needs no attention. It is deleted if `kept` is false. */
export class Uneventful extends Error {
  readonly outcome: 'ignored' | 'auto_reply'
  readonly kept: boolean
  constructor(outcome: 'ignored' | 'auto_reply', kept = true) {
    super(`uneventful: ${outcome}`)
    this.outcome = outcome
    this.kept = kept
  }
}

/** Thrown for an unreadable report whose email is known. */
export class UnreadableReport extends Error {
  readonly event: ReportedEvent
  constructor(reason: string, event: ReportedEvent) {
    super(reason)
    this.event = event
  }
}

/**
 * Reads one raw report into its events. @throws Uneventful if it contains no event to apply.
 * @throws Error if it is unreadable. It is then parked.
 */
export type ReportReader = (report: RawReport) => Promise<ReportedEvent[]>

/**
 * Reduces a raw report to the part that may be stored. Null if it is unreadable. `body` is null if nothing remains.
 */
export type ReportCut = (body: Buffer) => { body: Buffer | null } | null
