/**
 * What happened to emails, applied: events stored once, rows moved up the ladder.
 * Promises: any order and any number of repeats of the same events end in the same state; set-based, the same few
 * statements for one event or a thousand. Given a transaction; must not know a provider's words. Contract §6.
 */
import type { Tx } from '../pool.ts'
import { type EmailStatus, higherStatus, statusOfEvent } from './status.ts'
import { type EmailEvent, insertEvents, raiseStatuses } from './table.ts'

/** Stores events and lifts their rows. Events that were stored before change nothing. */
export async function applyEmailEvents(tx: Tx, events: readonly EmailEvent[]): Promise<void> {
  if (events.length === 0) return
  const stored = await insertEvents(tx, events)
  const fresh = new Set(stored.map((event) => `${event.email_id}/${event.event_key}`))
  const rises = new Map<string, { team_id: string; email_id: string; status: EmailStatus }>()
  for (const event of events) {
    if (!fresh.has(`${event.email_id}/${event.event_key}`)) continue
    const { team_id, email_id } = event
    const status = higherStatus(rises.get(email_id)?.status ?? 'queued', statusOfEvent(event.kind))
    rises.set(email_id, { team_id, email_id, status })
  }
  const moving = [...rises.values()].filter(({ status }) => status !== 'queued')
  // One order for everyone, so that two transactions over the same rows cannot deadlock.
  moving.sort((one, other) => (one.email_id < other.email_id ? -1 : 1))
  if (moving.length > 0) await raiseStatuses(tx, moving)
}
