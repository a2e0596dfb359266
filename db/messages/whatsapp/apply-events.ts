/**
 * Applies events to WhatsApp messages: stores each event once, records acceptance, raises the status, returns
 * messages to be sent again (give-back.ts), and records failures of a template, in the caller's transaction. Any
 * order, repeats and split of the same events end in the same status and timeline. Works on sets, with the same few
 * statements for any number of events.
 */

import type { MessageEvent } from '../../channels/events/events.sql.ts'
import { APPLIED, type EventResult, ignored, UNKNOWN } from '../../delivery/reports/event-result.ts'
import { type ReportedRef, rowsOfReported } from '../../delivery/reports/ref.ts'
import type { Tx } from '../../postgres/pool.ts'
import { isOneOf } from '../../validation/keys.ts'
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
import { type LateFailure, returnToQueue } from './give-back.ts'
import { keyOf, type MessageRef, type Pricing } from './messages.sql.ts'
import type { OptOutChange } from './opt-outs.sql.ts'
import { changeOptOuts, OPTED_OUT_CODE } from './opt-outs.ts'
import { higherStatus, statusOfEvent, type TemplateState, type WhatsappStatus } from './status.ts'
import { type ReportedFinding, recordReportedFindings } from './templates.sql.ts'

/**
 * An event, and the provider's ID of the message if known, which proves that the provider accepted it. `wa_id`: the
 * recipient's ID at the provider, if it differs from the number.
 */
export type AppliedEvent = WhatsappEvent & { provider_message_id?: string | null; wa_id?: string | null }

export type ReportedStatus = Pick<MessageEvent, 'event_key' | 'occurred_at' | 'detail'> & {
  ref: ReportedRef
  /**
   * `held`: failed because of the sender, and sent again once that is fixed. `deferred`: failed temporarily, and sent
   * again after a pause of at least `wait_seconds` if only this recipient must wait.
   */
  status: 'sent' | 'delivered' | 'read' | 'failed' | 'held' | 'deferred'
  wait_seconds?: number | undefined
  /** The sending number. Null if the report doesn't include it. */
  number: string | null
  pricing?: Pricing
  /** The provider's error code, if any. */
  code?: string
  /** The provider's ID of the message, for a row that has not stored it yet. Null if the report has none. */
  provider_message_id: string | null
  /** Set if the template caused the failure: its new state, or null if that doesn't change. */
  template?: { status: TemplateState | null } | undefined
}

type Locked = ReadonlyMap<string, LockedMessage>

/** Locks rows in one order, so that two transactions can't deadlock. */
async function lockedRows(tx: Tx, refs: readonly MessageRef[]) {
  const rows = refs.length > 0 ? await lockMessages(tx, refs) : []
  return new Map(rows.map((row) => [keyOf(row), row]))
}

/** Stores events and raises their rows. Events that are already stored change nothing. @returns a result for each. */
export async function applyWhatsappEvents(tx: Tx, events: readonly AppliedEvent[]): Promise<EventResult[]> {
  return lift(tx, events, await lockedRows(tx, events))
}

async function lift(tx: Tx, events: readonly AppliedEvent[], locked: Locked): Promise<EventResult[]> {
  const placed = events.filter((event) => locked.has(keyOf(event)))
  const stored = await storeWhatsappEvents(tx, placed)
  const { earlier = [], counted = [] } = Object.groupBy(stored, (event) =>
    isOfGivenBack(event, locked.get(keyOf(event))) ? 'earlier' : 'counted',
  )
  await accept(tx, counted)
  await raise(tx, counted)
  await changeOptOuts(tx, findOptOuts(counted, locked))
  const sent = earlier.filter(({ kind }) => kind === 'sent')
  if (sent.length > 0) await markSent(tx, sent)
  return events.map((event) => (locked.has(keyOf(event)) ? APPLIED : UNKNOWN))
}

/** Returns the opt-outs that failures report. */
const findOptOuts = (events: readonly AppliedEvent[], locked: Locked) =>
  events.flatMap((event): OptOutChange[] => {
    const row = locked.get(keyOf(event))
    if (event.kind !== 'failed' || event.code !== OPTED_OUT_CODE || !row?.recipient.startsWith('+')) return []
    const { team_id, occurred_at: at } = event
    return [{ team_id, recipient: row.recipient, is_out: true, at, by: OPTED_OUT_CODE }]
  })

/** True if an event belongs to a failed attempt of a message that is sent again. */
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

/** A status that contains only the provider's ID and not ours may be about another server's message. */
const FOREIGN = ignored('the status belongs to none of our messages')
const OF_OTHER_NUMBER = ignored("the status is from a number that didn't send the message")

type Known = Omit<ReportedStatus, 'ref' | 'status'> &
  MessageRef & { kind: ReportedStatus['status']; index: number }

/**
 * Drops events about messages of another number. While the ID of the default number is unknown, it may be any that
 * isn't stored.
 */
async function ofTheirNumbers(tx: Tx, found: readonly Known[], locked: Locked): Promise<Known[]> {
  const unsure = found.flatMap((event) =>
    event.number !== null && locked.get(keyOf(event))?.number === null ? [event.number] : [],
  )
  const { own } = unsure.length === 0 ? { own: new Set() } : await ownNumbers(tx, unsure)
  return found.filter((event) => {
    const row = locked.get(keyOf(event))
    if (!row || event.number === null) return true
    return row.number === null ? !own.has(event.number) : row.number === event.number
  })
}

/** Applies statuses of reports, found by our own IDs or the provider's. @returns a result for each. */
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
  // All at once, in the global lock order. Otherwise two batches could deadlock.
  const locked = await lockedRows(tx, found)
  const results = events.map((): EventResult => FOREIGN)
  const known = await ofTheirNumbers(tx, found, locked)
  for (const { index } of found) results[index] = OF_OTHER_NUMBER
  for (const [index, result] of await applyKnown(tx, known, { locked, now })) results[index] = result
  await leaveOutForeign(tx, known, results)
  return results
}

const LATE = ['held', 'deferred'] as const

async function applyKnown(tx: Tx, known: readonly Known[], { locked, now }: { locked: Locked; now: Date }) {
  const isLate = (event: Known): event is Known & LateFailure => isOneOf(LATE, event.kind)
  const lifting = known.filter((event) => !isLate(event))
  const late = known.filter(isLate)
  const lifted = await lift(tx, lifting, locked)
  const { results, overdue } = await returnToQueue(tx, late, { now, read: (refs) => lockedRows(tx, refs) })
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
    ...lifting.map(({ index }, at): [number, EventResult] => [index, lifted[at] ?? UNKNOWN]),
    ...late.map(({ index }, at): [number, EventResult] => [index, results[at] ?? UNKNOWN]),
  ]
}

/** Drops statuses of unknown messages from numbers that aren't ours: another server sends from those. */
async function leaveOutForeign(tx: Tx, known: readonly Known[], results: EventResult[]): Promise<void> {
  const unknown = known.filter(({ index, number }) => results[index]?.kind === 'unknown' && number !== null)
  if (unknown.length === 0) return
  const numbers = [...new Set(unknown.flatMap(({ number }) => number ?? []))]
  const { isDefaultKnown, own } = await ownNumbers(tx, numbers)
  for (const { index, number } of unknown)
    if (isDefaultKnown && number !== null && !own.has(number)) results[index] = FOREIGN
}
