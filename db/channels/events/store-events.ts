/**
 * Stores events of messages once, and publishes the new ones, in the caller's transaction. No other module stores
 * events. One statement for any number of events. Publishing only needs statements if a team has webhooks.
 */

import type { Tx } from '../../postgres/pool.ts'
import type { Deliverable } from '../channel.sql.ts'
import { digest16, insertEvents, type MessageEvent } from './events.sql.ts'
import { publish } from './webhooks.ts'

const nameOf = ({ team_id, id }: { team_id: string; id: string }, digest: string): string =>
  `${team_id}/${id}/${digest}`

/** Stores events. @returns the new ones. */
export async function storeEvents<E extends MessageEvent>(
  tx: Tx,
  channel: Deliverable,
  events: readonly E[],
): Promise<E[]> {
  if (events.length === 0) return []
  const stored = await insertEvents(tx, channel, events)
  const listenersOf = new Map(stored.map((row) => [nameOf(row, row.digest), row.has_listeners]))
  const fresh = events.flatMap((event) => {
    const name = nameOf(event, digest16(event.event_key))
    const has_listeners = listenersOf.get(name)
    listenersOf.delete(name)
    return has_listeners === undefined ? [] : [{ event, has_listeners }]
  })
  await publish(
    tx,
    fresh
      .filter(({ has_listeners }) => has_listeners)
      .map(({ event: { team_id, id, kind, recipient = null, occurred_at, detail } }) => ({
        subject: channel.name,
        ...{ team_id, id, kind, recipient, occurred_at, detail },
      })),
  )
  return fresh.map(({ event }) => event)
}
