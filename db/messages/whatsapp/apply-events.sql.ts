/** What happened to WhatsApp messages, written to their rows: found, locked, marked as taken, lifted. */
import { sql } from 'slonik'
import { boolean, object, string } from 'yup'
import { WHATSAPP_LADDER } from '../../channels/whatsapp.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { MESSAGE_REF, type MessageRef } from './messages.sql.ts'
import type { WhatsappStatus } from './status.ts'

const messageRefRow = row({ team_id: string(), message_id: string() })

const lockedRow = messageRefRow.concat(
  row({
    status: string().oneOf(WHATSAPP_LADDER),
    untaken: boolean(),
    provider_message_id: string().nullable(),
  }),
)

/** Locks those of the messages that exist, until the transaction ends; with what the provider has said so far. */
export const lockMessages = (tx: Tx, refs: readonly MessageRef[]) =>
  tx.any(sql.prepared('lock_whatsapp_messages', lockedRow)`
    select team_id, id as message_id, status, accepted_at is null as untaken, provider_message_id from whatsapp_messages
    where (team_id, id) in (select * from ${rowsOf('ref', MESSAGE_REF, refs)})
    order by team_id, id for no key update`)

/** Makes messages that the provider gave back unfinished again. */
export const releaseMessages = (tx: Tx, refs: readonly MessageRef[], now: Date) =>
  tx.query(sql.prepared('release_whatsapp_messages', object())`
    update whatsapp_messages set accepted_at = null, provider_message_id = null, requeued_at = ${sql.timestamp(now)}
    where (team_id, id) in (select * from ${rowsOf('ref', MESSAGE_REF, refs)}) and status = 'queued'`)

const foundRow = messageRefRow.concat(row({ provider_message_id: string() }))

export async function messagesByProviderIds(
  tx: Tx,
  ids: readonly string[],
): Promise<Map<string, MessageRef>> {
  const rows = await tx.any(sql.prepared('whatsapp_by_provider_ids', foundRow)`
    select team_id, id as message_id, provider_message_id from whatsapp_messages
    where provider_message_id = any(${sql.array(ids, 'text')})`)
  return new Map(rows.map(({ provider_message_id, ...ref }) => [provider_message_id, ref]))
}

/** A message that the provider has taken; its id is null when the answer could not be read. */
export type Acceptance = MessageRef & { accepted_at: Date; provider_message_id: string | null }

/** Stores that the provider has taken messages, in one statement; what was stored first stays. */
export async function recordAcceptances(tx: Tx, taken: readonly Acceptance[]): Promise<void> {
  const types = { ...MESSAGE_REF, accepted_at: 'timestamptz', provider_message_id: 'text' }
  await tx.query(sql.prepared('record_whatsapp_acceptances', object())`
    update whatsapp_messages m set
      accepted_at = coalesce(m.accepted_at, a.accepted_at),
      provider_message_id = coalesce(m.provider_message_id, a.provider_message_id)
    from ${rowsOf('a', types, taken)}
    where m.team_id = a.team_id and m.id = a.message_id`)
}

/** Lifts locked rows to a status each, never down the ladder, in one statement. */
export async function raiseStatuses(tx: Tx, rises: readonly (MessageRef & { status: WhatsappStatus })[]) {
  const ladder = sql.array(WHATSAPP_LADDER, 'text')
  await tx.query(sql.prepared('raise_whatsapp_statuses', object())`
    with rise as (
      select r.*
      from ${rowsOf('r', { ...MESSAGE_REF, status: 'text' }, rises)}
        join whatsapp_messages m on m.team_id = r.team_id and m.id = r.message_id
      where array_position(${ladder}, r.status) > array_position(${ladder}, m.status)
    )
    update whatsapp_messages m set status = r.status from rise r where m.team_id = r.team_id and m.id = r.message_id`)
}
