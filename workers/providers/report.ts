/**
 * What a provider adapter makes of a raw report: neutral events, as the code in db/ that applies them takes them.
 * Nothing outside workers/providers knows a provider's words. Must not import an adapter.
 */

import type { ReportedEvent } from '../../db/messages/apply-reports.ts'

/** As long as a provider that refuses our set-up is left alone in the dialogue, in seconds (circuit-breaker.ts). */
const SENDER_PAUSE_S = 30

/** What a verified report about our own set-up does to its sender, as in the dialogue. */
export const pausedBy = (
  sender: string,
  { detail, occurred_at }: { detail: string; occurred_at: Date },
): ReportedEvent => ({ channel: 'sender', sender, seconds: SENDER_PAUSE_S, reason: detail, occurred_at })

export type RawReport = { body: Buffer; received_at: Date }

/** Why a report gives no event, and needs no look. `kept` false: it is deleted. */
export class Uneventful extends Error {
  readonly outcome: 'ignored' | 'auto_reply'
  readonly kept: boolean
  constructor(outcome: 'ignored' | 'auto_reply', kept = true) {
    super(`uneventful: ${outcome}`)
    this.outcome = outcome
    this.kept = kept
  }
}

/** A report that can't be read, of which it is known what email it is about. */
export class UnreadableReport extends Error {
  readonly event: ReportedEvent
  constructor(reason: string, event: ReportedEvent) {
    super(reason)
    this.event = event
  }
}

/**
 * Turns one raw report into its events.
 * @throws Uneventful if there is nothing to apply. @throws Error if it can't be read: such a report is parked.
 */
export type ReportReader = (report: RawReport) => Promise<ReportedEvent[]>

/** Cuts a raw report to what may be stored of it. null: it can't be read. `body` null: nothing is left of it. */
export type ReportCut = (body: Buffer) => { body: Buffer | null } | null
