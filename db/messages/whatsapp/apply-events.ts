/**
 * Applies what happened to WhatsApp messages: stores each event once, marks rows as taken, moves them up the ladder,
 * and notes on a template what a failure says of it.
 * Promises: any order, any number of repeats and any split of the same events end in the same status and timeline (when
 * a message was taken is what was stored first); set-based, the same few statements for one event or a thousand. Given
 * a transaction; must not know a provider's words.
 */

import type { MessageEvent } from '../../channels/happenings/events.sql.ts'
import { APPLIED, type EventResult, UNKNOWN } from '../../delivery/reports/event-result.ts'
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

/** Stores events and lifts their rows. Events that were stored before change nothing. @returns a result for each. */
export async function applyWhatsappEvents(tx: Tx, events: readonly AppliedEvent[]): Promise<EventResult[]> {
  if (events.length === 0) return []
  // Locked in one order by everyone, so that two transactions over the same rows cannot deadlock.
  const there = new Set((await lockMessages(tx, events)).map(keyOf))
  const placed = events.filter((event) => there.has(keyOf(event)))
  const news = placed.length > 0 ? await storeWhatsappEvents(tx, placed) : []
  await accept(tx, news)
  await raise(tx, news)
  return events.map((event) => (there.has(keyOf(event)) ? APPLIED : UNKNOWN))
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

type Found = AppliedEvent & Pick<ReportedStatus, 'template'>

/** For so long an answer that says a message was taken may still be on its way to its row, in milliseconds. */
const RECORDING_MS = 30_000

/**
 * Takes back messages that the provider took and then gave back, unless it has taken them again since. A report that
 * was stored before gives nothing back; one of a message whose first answer is not recorded yet is worth another try.
 */
async function release(tx: Tx, events: readonly Found[], now: Date): Promise<EventResult[]> {
  if (events.length === 0) return []
  const rows = new Map((await lockMessages(tx, events)).map((row) => [keyOf(row), row]))
  const isEarly = ({ occurred_at }: Found) => now.getTime() - occurred_at.getTime() < RECORDING_MS
  const found = events.filter((event) => {
    const row = rows.get(keyOf(event))
    return row && !(row.status === 'queued' && row.untaken && isEarly(event))
  })
  const given_back = (await storeWhatsappEvents(tx, found)).filter((event) => {
    const row = rows.get(keyOf(event))
    const provider_message_id = row?.provider_message_id ?? event.provider_message_id
    return row?.status === 'queued' && !row.untaken && provider_message_id === event.provider_message_id
  })
  if (given_back.length > 0) await releaseMessages(tx, given_back, now)
  return events.map((event): EventResult => {
    const { team_id, message_id } = event
    if (given_back.includes(event)) return { kind: 'applied', again: { team_id, message_id } }
    return found.includes(event) ? APPLIED : UNKNOWN
  })
}

/** Applies statuses as reports bring them: found by our own ids, or by the provider's. @returns a result for each. */
export async function applyReportedWhatsapp(tx: Tx, events: readonly ReportedStatus[], now: Date) {
  const rows = await rowsOfReported(
    events,
    (team_id, message_id) => ({ team_id, message_id }),
    (ids) => messagesByProviderIds(tx, ids),
  )
  const found = events.map(({ ref: _ref, status: kind, ...event }, index): Found | undefined => {
    const own = rows[index]
    return own && { ...event, ...own, kind }
  })
  const known = found.filter((event) => event !== undefined)
  const results = new Map<Found, EventResult>()
  // All at once, in the order of everyone: two batches could lock each other out.
  if (known.length > 0) await lockMessages(tx, known)
  for (const [own, apply] of [
    [known.filter(({ kind }) => kind !== 'held'), applyWhatsappEvents],
    [known.filter(({ kind }) => kind === 'held'), (tx: Tx, held: readonly Found[]) => release(tx, held, now)],
  ] as const) {
    const applied = await apply(tx, own)
    for (const [index, event] of own.entries()) results.set(event, applied[index] ?? UNKNOWN)
  }
  const findings = known.flatMap(({ template, detail: fault, ...event }): ReportedFinding[] =>
    template ? [{ ...event, status: template.status, fault }] : [],
  )
  if (findings.length > 0) await recordReportedFindings(tx, findings, now)
  return found.map((event) => (event && results.get(event)) ?? UNKNOWN)
}
