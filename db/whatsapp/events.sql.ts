/** Rows of whatsapp_events: what happened to messages. */
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import { WHATSAPP_LADDER } from '../channels/ladder.ts'
import type { Tx } from '../postgres/pool.ts'
import { digest16 } from '../text/digest.ts'
import type { MessageRef } from './messages.sql.ts'
import type { WhatsappEventKind } from './status.ts'

/** One thing that happened to a message. */
export type WhatsappEvent = MessageRef & {
  /** What makes a repeat of it fall away: the provider's words for it, or the attempt. */
  event_key: string
  kind: WhatsappEventKind
  occurred_at: Date
  /** The provider's words. */
  detail: string
}

const freshEvent = object({
  team_id: string().defined(),
  message_id: string().defined(),
  digest: string().defined(),
})
const nameOf = ({ team_id, message_id }: MessageRef, digest: string): string =>
  `${team_id}/${message_id}/${digest}`

/** Stores events in one statement. @returns those that were not stored before. */
export async function insertWhatsappEvents<E extends WhatsappEvent>(
  tx: Tx,
  events: readonly E[],
): Promise<E[]> {
  const tuples = events.map((event) => [
    event.team_id,
    event.message_id,
    digest16(event.event_key),
    event.kind,
    event.occurred_at.toISOString(),
    event.detail,
  ])
  const stored = await tx.any(sql.prepared('insert_whatsapp_events', freshEvent)`
    insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail)
    select e.team_id, e.message_id, decode(e.event_key, 'hex'), e.kind, e.occurred_at, e.detail
    from ${sql.unnest(tuples, ['uuid', 'uuid', 'text', 'text', 'timestamptz', 'text'])}
      as e (team_id, message_id, event_key, kind, occurred_at, detail)
    on conflict do nothing
    returning team_id, message_id, encode(event_key, 'hex') as digest`)
  const fresh = new Set(stored.map((row) => nameOf(row, row.digest)))
  return events.filter((event) => fresh.has(nameOf(event, digest16(event.event_key))))
}

const eventRow = object({
  kind: string().defined(),
  occurred_at: string().defined(),
  detail: string().defined(),
})
export type WhatsappEventRow = InferType<typeof eventRow>

/** The message's timeline, oldest first; within a second, which is all that reports tell, by the ladder. */
export async function eventsOfMessage(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<readonly WhatsappEventRow[]> {
  return tx.any(sql.type(eventRow)`
    select kind, occurred_at, detail from whatsapp_events
    where team_id = ${teamId} and message_id = ${id}
    order by date_trunc('second', occurred_at),
      coalesce(array_position(${sql.array(WHATSAPP_LADDER, 'text')}, kind), 0), occurred_at, kind = 'gave_up',
      event_key`)
}
