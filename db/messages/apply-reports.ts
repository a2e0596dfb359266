/**
 * Applies the events of delivery reports, of any channel, in the caller's transaction. Any order and any repeats end
 * in the same state. To add a channel, add its appliers and followers.
 */
import { type EventResult, ignored } from '../delivery/reports/event-result.ts'
import { applyReportedPauses } from '../delivery/senders/reported-pauses.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/producer.ts'
import { keysOf } from '../validation/keys.ts'
import { type ApplyOptions, applyReportedEmails } from './emails/apply-events.ts'
import { applySenderReports } from './emails/sender-reports.ts'
import { followWhatsappReports, WHATSAPP_APPLIERS } from './whatsapp/apply-reports.ts'

/** Applies events of one kind. @returns a result for each. */
type Applier<E> = (
  tx: Tx,
  events: readonly E[],
  now: Date,
  options: ApplyOptions,
) => Promise<readonly EventResult[]>

/** Applied in the lock order of deliveries: rows, templates, senders. Blaming a sender locks nothing others need. */
const APPLIERS = {
  email: applyReportedEmails,
  ...WHATSAPP_APPLIERS,
  sender: applyReportedPauses,
  sender_report: applySenderReports,
} as const satisfies Record<string, Applier<never>>

/** Enqueue follow-up jobs in the same transaction. */
const FOLLOWERS = [followWhatsappReports] as const

type Appliers = typeof APPLIERS
type Kind = keyof Appliers

type Reported<K extends Kind> = { channel: K } & Parameters<Appliers[K]>[1][number]
export type ReportedEvent = { [K in Kind]: Reported<K> }[Kind]

async function applyKind<K extends Kind>(
  kind: K,
  tx: Tx,
  events: readonly ReportedEvent[],
  now: Date,
  options: ApplyOptions,
): Promise<Map<ReportedEvent, EventResult>> {
  const own = events.filter((event) => event.channel === kind)
  if (own.length === 0) return new Map()
  // Each applier accepts the kind that it was filtered for.
  const results = await (APPLIERS[kind] as Applier<ReportedEvent>)(tx, own, now, options)
  return new Map(own.map((event, index) => [event, results[index] ?? ignored('no result')]))
}

export async function applyEvents(
  tx: Tx,
  events: readonly ReportedEvent[],
  now: Date,
  options: ApplyOptions = {},
): Promise<ReadonlyMap<ReportedEvent, EventResult>> {
  const results = new Map<ReportedEvent, EventResult>()
  for (const kind of keysOf(APPLIERS)) {
    for (const [event, result] of await applyKind(kind, tx, events, now, options)) results.set(event, result)
  }
  return results
}

export async function followEvents(
  at: { tx: Tx; queue: Pick<Producer, 'enqueue' | 'reenqueue'> },
  results: readonly EventResult[],
): Promise<void> {
  for (const follow of FOLLOWERS) await follow(at, results)
}
