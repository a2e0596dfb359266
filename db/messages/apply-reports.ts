/**
 * Applies what reports bring, whatever channel it is of: set-based, in the caller's transaction.
 * Promises: any order and any repeats end in the same state; channels are always taken in the same order, which is
 * that of deliveries' locks. Must not know a provider's words. To add a channel: its appliers, and what follows them.
 */
import { type EventResult, ignored } from '../delivery/reports/event-result.ts'
import { applyReportedPauses } from '../delivery/senders/reported-pauses.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/producer.ts'
import { type ApplyOptions, applyReportedEmails } from './emails/apply-events.ts'
import { applySenderBlames } from './emails/sender-reports.ts'
import { followWhatsappReports, WHATSAPP_APPLIERS } from './whatsapp/apply-reports.ts'

/** Applies events of one kind. @returns a result for each. */
type Applier<E> = (
  tx: Tx,
  events: readonly E[],
  now: Date,
  options: ApplyOptions,
) => Promise<readonly EventResult[]>

/** In the order of their locks: rows, templates, senders. What blames a sender locks nothing that others wait for. */
const APPLIERS = {
  email: applyReportedEmails,
  ...WHATSAPP_APPLIERS,
  sender: applyReportedPauses,
  sender_blame: applySenderBlames,
} as const satisfies Record<string, Applier<never>>

/** What enqueues what has to follow, in the same transaction. */
const FOLLOWERS = [followWhatsappReports] as const

type Appliers = typeof APPLIERS
type Kind = keyof Appliers

/** One piece of news of a report, by what it is about. */
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
  // Each applier takes what it was filtered for.
  const results = await (APPLIERS[kind] as Applier<ReportedEvent>)(tx, own, now, options)
  return new Map(own.map((event, index) => [event, results[index] ?? ignored('no result')]))
}

/** Applies events of any channels. @returns the result of each event. */
export async function applyEvents(
  tx: Tx,
  events: readonly ReportedEvent[],
  now: Date,
  options: ApplyOptions = {},
): Promise<ReadonlyMap<ReportedEvent, EventResult>> {
  const results = new Map<ReportedEvent, EventResult>()
  for (const kind of Object.keys(APPLIERS) as Kind[]) {
    for (const [event, result] of await applyKind(kind, tx, events, now, options)) results.set(event, result)
  }
  return results
}

/** Enqueues what has to follow from what was applied. */
export async function followEvents(
  at: { tx: Tx; queue: Pick<Producer, 'enqueue' | 'reenqueue'> },
  results: readonly EventResult[],
): Promise<void> {
  for (const follow of FOLLOWERS) await follow(at, results)
}
