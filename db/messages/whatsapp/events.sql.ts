/** Rows of whatsapp_events. */
import { sql } from 'slonik'
import { string } from 'yup'
import type { MessageEvent } from '../../channels/events/events.sql.ts'
import { storeEvents } from '../../channels/events/store-events.ts'
import { WHATSAPP } from '../../channels/whatsapp.sql.ts'
import { WHATSAPP_LADDER } from '../../channels/whatsapp.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import type { MessageRef } from './messages.sql.ts'
import type { WhatsappEventKind } from './status.ts'

export type WhatsappEvent = MessageRef &
  Pick<MessageEvent, 'event_key' | 'occurred_at' | 'detail' | 'code'> & { kind: WhatsappEventKind }

/** Stores events of messages. @returns the new ones. */
export async function storeWhatsappEvents<E extends WhatsappEvent>(tx: Tx, events: readonly E[]) {
  const given = events.map((event) => {
    const { team_id, message_id: id, event_key, kind, occurred_at, detail, code } = event
    return { team_id, id, event_key, kind, occurred_at, detail, code, event }
  })
  return (await storeEvents(tx, WHATSAPP, given)).map(({ event }) => event)
}

const eventRow = row({ kind: string(), occurred_at: string(), detail: string(), code: string().nullable() })

/**
 * Returns a message's timeline, oldest first. Within a second, the precision of reports, events are sorted by status.
 */
export const eventsOfMessage = (tx: Tx, teamId: string, id: string) =>
  tx.any(sql.type(eventRow)`
    select kind, occurred_at, detail, code from whatsapp_events
    where team_id = ${teamId} and message_id = ${id}
    order by date_trunc('second', occurred_at),
      coalesce(array_position(${sql.array(WHATSAPP_LADDER, 'text')}, kind), 0), occurred_at, kind = 'gave_up',
      event_key`)

const failureRow = idRow.concat(row({ detail: string(), code: string().nullable() }))

/** Returns the last failure of those among a team's messages that have one. */
export const lastFailures = (tx: Tx, teamId: string, ids: readonly string[]) =>
  tx.any(sql.type(failureRow)`
    select distinct on (message_id) message_id as id, detail, code from whatsapp_events
    where team_id = ${teamId} and message_id = any(${sql.array(ids, 'uuid')}) and kind in ('failed', 'gave_up')
    order by message_id, occurred_at desc`)
