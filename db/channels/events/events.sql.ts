/** The one statement that stores events of messages, for every channel. */
import { createHash } from 'node:crypto'
import { sql } from 'slonik'
import { boolean, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import type { Deliverable, DeliveryRef } from '../channel.sql.ts'
import { hasListeners } from './webhooks.sql.ts'

export type MessageEvent = DeliveryRef & {
  /** Deduplicates the event: the provider's event ID, a hash, or the attempt. */
  event_key: string
  kind: string
  occurred_at: Date
  /** The provider's message, made storable, or ours. */
  detail: string
  /** Only set by channels that have them. */
  recipient?: string | null | undefined
  contact_id?: string | null | undefined
  effect?: string | null | undefined
  /** The provider's error code. */
  code?: string | null | undefined
}

/** Returns 16 bytes of SHA-256 in hexadecimal, the stored form of an event key. */
export const digest16 = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

const storedRow = row({ team_id: string(), id: string(), digest: string(), has_listeners: boolean() })

const EVENT = {
  ...{ team_id: 'uuid', id: 'uuid', event_key: 'text', kind: 'text' },
  ...{ occurred_at: 'timestamptz', detail: 'text' },
}

/** Stores events. @returns the new ones by their digest, and whether the team has webhooks. */
export async function insertEvents(
  tx: Tx,
  { name, events: table, message, further }: Deliverable,
  events: readonly MessageEvent[],
) {
  const items = events.map((event) => ({ ...event, event_key: digest16(event.event_key) }))
  return tx.any(sql.prepared(`insert_events_${name}`, storedRow)`
    insert into ${table} as stored (team_id, ${message}, event_key, kind, occurred_at, detail${further.columns})
    select team_id, id, decode(event_key, 'hex'), kind, occurred_at, detail${further.columns}
    from ${rowsOf('e', { ...EVENT, ...further.types }, items)}
    on conflict do nothing
    returning team_id, ${message} as id, encode(event_key, 'hex') as digest,
      ${hasListeners(sql.fragment`stored.team_id`)} as has_listeners`)
}
