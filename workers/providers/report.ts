/**
 * What a provider adapter makes of a raw report: neutral events, as the code in db/ that applies them takes them.
 * Nothing outside workers/providers knows a provider's words. Must not import an adapter.
 */

import type { ReportedEvent } from '../../db/messages/apply-reports.ts'

export type RawReport = { body: Buffer; received_at: Date }

/** Turns one raw report into its events. @throws Error when it cannot be read: such a report is parked. */
export type ReportReader = (report: RawReport) => Promise<ReportedEvent[]>

/** Cuts a raw report to what may be stored of it. null: it can't be read. `body` null: nothing is left of it. */
export type ReportCut = (body: Buffer) => { body: Buffer | null } | null
