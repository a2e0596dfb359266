/** Rows of sender_events, the timelines of senders. */
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { idNow } from '../../process/ids.ts'
import { isOwnSender } from './senders.sql.ts'

const SENDER_EVENTS = ['slowed', 'paused', 'recovered', 'resumed'] as const

const eventRow = row({
  sender: string(),
  time: string(),
  kind: string().oneOf(SENDER_EVENTS),
  detail: string(),
})
type SenderEventRow = InferType<typeof eventRow>

/** An event of a sender. `detail` is the provider's response, or an operator's text. */
export type SenderEvent = { sender: string; kind: SenderEventRow['kind']; occurred_at: Date; detail: string }

export async function insertSenderEvents(tx: Tx, events: readonly SenderEvent[]): Promise<void> {
  const types = { sender: 'text', id: 'uuid', kind: 'text', occurred_at: 'timestamptz', detail: 'text' }
  const items = events.map((event) => ({ ...event, id: idNow() }))
  await tx.query(sql.prepared('insert_sender_events', object())`
    insert into sender_events (sender, id, kind, occurred_at, detail)
    select * from ${rowsOf('e', types, items)}`)
}

/** The newest events of each sender of ours, up to `limit` of each, newest first. */
export const senderEvents = (tx: Tx, limit: number) =>
  tx.any(sql.type(eventRow)`
    select e.sender, e.occurred_at as time, e.kind, e.detail
    from senders s cross join lateral (
      select * from sender_events where sender = s.key order by id desc limit ${limit}) e
    where ${isOwnSender}
    order by e.sender, e.id desc`)
