/**
 * Applies what happened to WhatsApp messages: stores each event once, marks rows as taken, moves them up the ladder,
 * and notes on a template what a failure says of it.
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
  lockMessages,
  messagesByProviderIds,
  raiseStatuses,
  recordAcceptances,
  releaseMessages,
} from './apply-events.sql.ts'
import { storeWhatsappEvents, type WhatsappEvent } from './events.sql.ts'
import type { MessageRef } from './messages.sql.ts'
import { higherStatus, statusOfEvent, type TemplateState, type WhatsappStatus } from './status.ts'
import { type ReportedFinding, recordReportedFindings } from './templates.sql.ts'

/** An event, and the provider's id of the message where it brings one: that proves that the provider has taken it. */
export type AppliedEvent = WhatsappEvent & { provider_message_id?: string | null }

export type ReportedStatus = Pick<MessageEvent, 'event_key' | 'occurred_at' | 'detail'> & {
  ref: ReportedRef
  /** `held`: given back for a fault of the sender's, to be sent again once that is fixed. */
  status: 'sent' | 'delivered' | 'read' | 'failed' | 'held'
  /** The provider's fault code; absent without one. */
  code?: string
  /** The provider's id of the message, for a row that has not stored it yet; null when the report has none. */
  provider_message_id: string | null
  /** Given when the template is at fault: its new state, or null when it keeps the one it has. */
  template?: { status: TemplateState | null } | undefined
}

const keyOf = ({ team_id, message_id }: MessageRef): string => `${team_id}/${message_id}`

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
  locked: ReadonlyMap<string, unknown>,
): Promise<EventResult[]> {
  const placed = events.filter((event) => locked.has(keyOf(event)))
  const news = await storeWhatsappEvents(tx, placed)
  await accept(tx, news)
  await raise(tx, news)
  return events.map((event) => (locked.has(keyOf(event)) ? APPLIED : UNKNOWN))
}

async function accept(tx: Tx, events: readonly AppliedEvent[]): Promise<void> {
  const taken = new Map<string, Acceptance>()
  for (const event of events) {
    const { team_id, message_id, occurred_at, provider_message_id = null } = event
    if (event.kind !== 'accepted' && provider_message_id === null) continue
    const known = taken.get(keyOf(event))
    taken.set(keyOf(event), {
      team_id,
      message_id,
      accepted_at: known && known.accepted_at < occurred_at ? known.accepted_at : occurred_at,
      provider_message_id: known?.provider_message_id ?? provider_message_id,
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

/** For so long an answer that says a message was taken may still be on its way to its row, in milliseconds. */
const RECORDING_MS = 30_000

/**
 * Takes back messages that the provider took and then gave back, unless it has taken them again since. A report that
 * was stored before gives nothing back; one of a message whose first answer is not recorded yet is worth another try.
 */
async function release(tx: Tx, events: readonly AppliedEvent[], now: Date): Promise<EventResult[]> {
  // Locked once more, to be read as the batch's other events have left them.
  const rows = await lockedRows(tx, events)
  const isEarly = ({ occurred_at }: AppliedEvent) => now.getTime() - occurred_at.getTime() < RECORDING_MS
  const found = events.flatMap((event, index) => {
    const row = rows.get(keyOf(event))
    if (!row || (row.status === 'queued' && row.untaken && isEarly(event))) return []
    return [{ ...event, row, index }]
  })
  const given_back = (await storeWhatsappEvents(tx, found)).filter(
    ({ row, provider_message_id }) =>
      row.status === 'queued' &&
      !row.untaken &&
      (row.provider_message_id === null || row.provider_message_id === provider_message_id),
  )
  if (given_back.length > 0) await releaseMessages(tx, given_back, now)
  const stored = new Set(found.map(({ index }) => index))
  const again = new Set(given_back.map(({ index }) => index))
  return events.map(({ team_id, message_id }, index): EventResult => {
    if (again.has(index)) return { kind: 'applied', again: { team_id, message_id } }
    return stored.has(index) ? APPLIED : UNKNOWN
  })
}

/** What we send brings our own ids back: a status with the provider's id alone may be of another server's message. */
const FOREIGN = ignored('the status is of no message of ours')

/** Applies statuses as reports bring them: found by our own ids, or by the provider's. @returns a result for each. */
export async function applyReportedWhatsapp(tx: Tx, events: readonly ReportedStatus[], now: Date) {
  const refs = await rowsOfReported(
    events,
    (team_id, message_id) => ({ team_id, message_id }),
    (ids) => messagesByProviderIds(tx, ids),
  )
  const known = events.flatMap(({ ref: _ref, status: kind, ...event }, index) => {
    const ref = refs[index]
    return ref ? [{ ...event, ...ref, kind, index }] : []
  })
  // All at once, in the order of everyone: two batches could lock each other out.
  const locked = await lockedRows(tx, known)
  const lifting = known.filter(({ kind }) => kind !== 'held')
  const held = known.filter(({ kind }) => kind === 'held')
  const applied = [...(await lift(tx, lifting, locked)), ...(await release(tx, held, now))]
  const results = events.map((): EventResult => FOREIGN)
  for (const [at, { index }] of [...lifting, ...held].entries()) results[index] = applied[at] ?? UNKNOWN
  const findings = known.flatMap(({ template, detail: fault, ...event }): ReportedFinding[] =>
    template ? [{ ...event, status: template.status, fault }] : [],
  )
  if (findings.length > 0) await recordReportedFindings(tx, findings, now)
  return results
}
