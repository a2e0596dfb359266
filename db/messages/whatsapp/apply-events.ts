/**
 * Applies what happened to WhatsApp messages: stores each event once, marks rows as taken, moves them up the ladder,
 * gives back what has to be sent again (give-back.ts), and notes on a template what a failure says of it.
 * Promises: any order, any number of repeats and any split of the same events end in the same status and timeline (when
 * a message was taken is what was stored first); set-based, the same few statements for one event or a thousand. Given
 * a transaction; must not know a provider's words.
 */

import type { MessageEvent } from '../../channels/events/events.sql.ts'
import { APPLIED, type EventResult, ignored, UNKNOWN } from '../../delivery/reports/event-result.ts'
import { type ReportedRef, rowsOfReported } from '../../delivery/reports/ref.ts'
import type { Tx } from '../../postgres/pool.ts'
import {
  type Acceptance,
  type LockedMessage,
  lockMessages,
  markSent,
  messagesByProviderIds,
  ownNumbers,
  raiseStatuses,
  recordAcceptances,
  recordPricing,
} from './apply-events.sql.ts'
import { storeWhatsappEvents, type WhatsappEvent } from './events.sql.ts'
import { giveBack, type LateFailure } from './give-back.ts'
import { keyOf, type MessageRef, type Pricing } from './messages.sql.ts'
import type { OptOutChange } from './opt-outs.sql.ts'
import { changeOptOuts, OPTED_OUT_CODE } from './opt-outs.ts'
import { higherStatus, statusOfEvent, type TemplateState, type WhatsappStatus } from './status.ts'
import { type ReportedFinding, recordReportedFindings } from './templates.sql.ts'

/**
 * An event, and the provider's id of the message where it brings one: that proves that the provider has taken it.
 * `wa_id`: the recipient's id at the provider, where it is another than the number.
 */
export type AppliedEvent = WhatsappEvent & { provider_message_id?: string | null; wa_id?: string | null }

export type ReportedStatus = Pick<MessageEvent, 'event_key' | 'occurred_at' | 'detail'> & {
  ref: ReportedRef
  /**
   * `held`: failed because of the sender, to be sent again once that is fixed. `deferred`: failed for a reason that
   * passes, to be sent again after a pause, of at least `wait_seconds` if only this recipient has to wait.
   */
  status: 'sent' | 'delivered' | 'read' | 'failed' | 'held' | 'deferred'
  wait_seconds?: number | undefined
  /** The number that the message was sent from; null if the report doesn't say. */
  number: string | null
  pricing?: Pricing
  /** The provider's fault code; absent without one. */
  code?: string
  /** The provider's id of the message, for a row that has not stored it yet; null when the report has none. */
  provider_message_id: string | null
  /** Given when the template is at fault: its new state, or null when it keeps the one it has. */
  template?: { status: TemplateState | null } | undefined
}

/** Locked in one order by everyone, so that two transactions over the same rows cannot deadlock. */
async function lockedRows(tx: Tx, refs: readonly MessageRef[]) {
  const rows = refs.length > 0 ? await lockMessages(tx, refs) : []
  return new Map(rows.map((row) => [keyOf(row), row]))
}

/** Stores events and lifts their rows. Events that were stored before change nothing. @returns a result for each. */
export async function applyWhatsappEvents(tx: Tx, events: readonly AppliedEvent[]): Promise<EventResult[]> {
  return lift(tx, events, await lockedRows(tx, events))
}

async function lift(
  tx: Tx,
  events: readonly AppliedEvent[],
  locked: ReadonlyMap<string, LockedMessage>,
): Promise<EventResult[]> {
  const placed = events.filter((event) => locked.has(keyOf(event)))
  const stored = await storeWhatsappEvents(tx, placed)
  const { earlier = [], counted = [] } = Object.groupBy(stored, (event) =>
    isOfGivenBack(event, locked.get(keyOf(event))) ? 'earlier' : 'counted',
  )
  await accept(tx, counted)
  await raise(tx, counted)
  await changeOptOuts(tx, optOutsOf(counted, locked))
  const sent = earlier.filter(({ kind }) => kind === 'sent')
  if (sent.length > 0) await markSent(tx, sent)
  return events.map((event) => (locked.has(keyOf(event)) ? APPLIED : UNKNOWN))
}

/** Whom failures say to have opted out of their team's marketing. */
const optOutsOf = (events: readonly AppliedEvent[], locked: ReadonlyMap<string, LockedMessage>) =>
  events.flatMap((event): OptOutChange[] => {
    const row = locked.get(keyOf(event))
    if (event.kind !== 'failed' || event.code !== OPTED_OUT_CODE || !row) return []
    const { team_id, occurred_at: at } = event
    return [{ team_id, recipient: row.recipient, is_out: true, at, by: OPTED_OUT_CODE }]
  })

/** Whether an event says nothing more, since it is of an attempt that failed, and the message is sent again. */
const isOfGivenBack = ({ kind, provider_message_id: id }: AppliedEvent, row: LockedMessage | undefined) =>
  (kind === 'sent' || kind === 'failed') && id != null && (row?.given_back?.includes(id) ?? false)

async function accept(tx: Tx, events: readonly AppliedEvent[]): Promise<void> {
  const taken = new Map<string, Acceptance>()
  for (const event of events) {
    const { team_id, message_id, occurred_at, provider_message_id = null, wa_id = null } = event
    if (event.kind !== 'accepted' && provider_message_id === null) continue
    const known = taken.get(keyOf(event))
    taken.set(keyOf(event), {
      team_id,
      message_id,
      accepted_at: known && known.accepted_at < occurred_at ? known.accepted_at : occurred_at,
      provider_message_id: known?.provider_message_id ?? provider_message_id,
      wa_id: wa_id ?? known?.wa_id ?? null,
    })
  }
  if (taken.size > 0) await recordAcceptances(tx, [...taken.values()])
}

async function raise(tx: Tx, events: readonly WhatsappEvent[]): Promise<void> {
  const rises = new Map<string, MessageRef & { status: WhatsappStatus }>()
  for (const event of events) {
    const { team_id, message_id } = event
    const status = higherStatus(rises.get(keyOf(event))?.status ?? 'queued', statusOfEvent(event.kind))
    rises.set(keyOf(event), { team_id, message_id, status })
  }
  const moving = [...rises.values()].filter(({ status }) => status !== 'queued')
  if (moving.length > 0) await raiseStatuses(tx, moving)
}

/** What we send brings our own ids back: a status with the provider's id alone may be of another server's message. */
const FOREIGN = ignored('the status is of no message of ours')
const OF_OTHER_NUMBER = ignored('the status is of a number that the message was not sent from')

type Known = Omit<ReportedStatus, 'ref' | 'status'> &
  MessageRef & { kind: ReportedStatus['status']; index: number }

const isOfNumber = ({ number }: Pick<ReportedStatus, 'number'>, row: LockedMessage): boolean =>
  number === null || row.number === null || number === row.number

/** Applies statuses as reports bring them: found by our own ids, or by the provider's. @returns a result for each. */
export async function applyReportedWhatsapp(tx: Tx, events: readonly ReportedStatus[], now: Date) {
  const refs = await rowsOfReported(
    events,
    (team_id, message_id) => ({ team_id, message_id }),
    (ids) => messagesByProviderIds(tx, ids),
  )
  const found = events.flatMap(({ ref: _ref, status: kind, ...event }, index): Known[] => {
    const ref = refs[index]
    return ref ? [{ ...event, ...ref, kind, index }] : []
  })
  // All at once, in the order of everyone: two batches could lock each other out.
  const locked = await lockedRows(tx, found)
  const results = events.map((): EventResult => FOREIGN)
  const known = found.filter((event) => {
    const row = locked.get(keyOf(event))
    if (row && !isOfNumber(event, row)) results[event.index] = OF_OTHER_NUMBER
    return !row || isOfNumber(event, row)
  })
  for (const [index, result] of await applyKnown(tx, known, { locked, now })) results[index] = result
  await leaveOutForeign(tx, known, results)
  return results
}

async function applyKnown(
  tx: Tx,
  known: readonly Known[],
  { locked, now }: { locked: ReadonlyMap<string, LockedMessage>; now: Date },
): Promise<[number, EventResult][]> {
  const isLate = ({ kind }: Known) => kind === 'held' || kind === 'deferred'
  const lifting = known.filter((event) => !isLate(event))
  const late = known.filter(isLate) as (Known & LateFailure)[]
  const lifted = await lift(tx, lifting, locked)
  const { results, overdue } = await giveBack(tx, late, { now, read: (refs) => lockedRows(tx, refs) })
  if (overdue.length > 0) await applyWhatsappEvents(tx, overdue)
  const priced = known.flatMap(({ pricing, ...event }) =>
    pricing && locked.has(keyOf(event)) ? [{ ...event, pricing }] : [],
  )
  if (priced.length > 0) await recordPricing(tx, priced)
  const findings = known.flatMap(({ template, detail: fault, ...event }): ReportedFinding[] =>
    template ? [{ ...event, status: template.status, fault }] : [],
  )
  if (findings.length > 0) await recordReportedFindings(tx, findings, now)
  return [
    ...lifting.map(({ index }, at) => [index, lifted[at] ?? UNKNOWN] as [number, EventResult]),
    ...late.map(({ index }, at) => [index, results[at] ?? UNKNOWN] as [number, EventResult]),
  ]
}

/** A status of a message that isn't there is of no use if its number isn't ours: another server sends from that. */
async function leaveOutForeign(tx: Tx, known: readonly Known[], results: EventResult[]): Promise<void> {
  const unknown = known.filter(({ index, number }) => results[index]?.kind === 'unknown' && number !== null)
  if (unknown.length === 0) return
  const own = await ownNumbers(tx, [...new Set(unknown.flatMap(({ number }) => number ?? []))])
  for (const { index, number } of unknown)
    if (own !== null && number !== null && !own.has(number)) results[index] = FOREIGN
}
