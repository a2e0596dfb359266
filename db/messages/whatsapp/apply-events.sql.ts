/** Queries for applying events to WhatsApp messages: find, lock and update rows. */
import { sql } from 'slonik'
import { array, boolean, type InferType, number, object, string } from 'yup'
import { WHATSAPP_LADDER } from '../../channels/whatsapp.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { MESSAGE_REF, type MessageRef, type Pricing } from './messages.sql.ts'
import type { WhatsappStatus } from './status.ts'

const messageRefRow = row({ team_id: string(), message_id: string() })

const lockedRow = messageRefRow.concat(
  row({
    status: string().oneOf(WHATSAPP_LADDER),
    untaken: boolean(),
    provider_message_id: string().nullable(),
    given_back: array(string()).nullable(),
    recipient: string(),
    /** The number that sends it. Null for the default one while its ID is unknown. */
    number: string().nullable(),
    /** The same, but null for the default number. */
    own_number: string().nullable(),
    parts: boolean().nullable(),
    /** The time from which its attempts count. */
    since: string(),
  }),
)
export type LockedMessage = InferType<typeof lockedRow>

/**
 * Locks the messages that exist until the transaction ends, and returns the provider's earlier responses. Each is
 * looked up by its key, in one order.
 */
export const lockMessages = (tx: Tx, refs: readonly MessageRef[]) =>
  tx.any(sql.prepared('lock_whatsapp_messages', lockedRow)`
    select m.team_id, m.id as message_id, m.status, m.accepted_at is null as untaken, m.provider_message_id, m.given_back,
      m.recipient, m.phone_number_id as own_number, m.parts, coalesce(m.tries_from, m.created_at) as since,
      coalesce(m.phone_number_id, (select phone_number_id from whatsapp_numbers where name = 'default')) as number
    from (
      select distinct team_id as ref_team, message_id as ref_id from ${rowsOf('ref', MESSAGE_REF, refs)} order by 1, 2
    ) ref
    cross join lateral (
      select * from whatsapp_messages where team_id = ref_team and id = ref_id for no key update) m`)

type GivenBack = MessageRef & { provider_message_id: string | null }

/** Requeues messages that the provider returned. Those that were reported as sent are still shown like that. */
export const releaseMessages = (tx: Tx, given: readonly GivenBack[], now: Date) =>
  tx.query(sql.prepared('release_whatsapp_messages', object())`
    update whatsapp_messages m set
      status = 'queued', was_sent = m.was_sent or m.status = 'sent', accepted_at = null, provider_message_id = null,
      given_back = case when g.provider_message_id is null then m.given_back
        else array_append(m.given_back, g.provider_message_id) end,
      requeued_at = ${sql.timestamp(now)}, requeues = m.requeues + 1
    from ${rowsOf('g', { ...MESSAGE_REF, provider_message_id: 'text' }, given)}
    where m.team_id = g.team_id and m.id = g.message_id and m.status in ('queued', 'sent')`)

/** Records that messages waiting for another attempt were reported as sent. */
export const markSent = (tx: Tx, refs: readonly MessageRef[]) =>
  tx.query(sql.prepared('mark_whatsapp_sent', object())`
    update whatsapp_messages set was_sent = true
    where (team_id, id) in (select * from ${rowsOf('ref', MESSAGE_REF, refs)}) and not was_sent`)

const historyRow = messageRefRow.concat(
  row({ template_id: string(), deferrals: number(), tried_since: string().nullable() }),
)

/** Returns how often messages were deferred, and since when. */
export const readDeferrals = (tx: Tx, refs: readonly MessageRef[]) =>
  tx.any(sql.prepared('whatsapp_deferrals', historyRow)`
    select m.team_id, m.id as message_id, r.template_id, past.*
    from ${rowsOf('ref', MESSAGE_REF, refs)}
      cross join lateral (
        select team_id, id, request_id, coalesce(tries_from, created_at) as since from whatsapp_messages
        where team_id = ref.team_id and id = ref.message_id offset 0) m
      cross join lateral (
        select template_id from whatsapp_requests where team_id = m.team_id and id = m.request_id offset 0) r
      cross join lateral (
        select count(*) filter (where kind = 'deferred') as deferrals, min(occurred_at) as tried_since
        from whatsapp_events
        where team_id = m.team_id and message_id = m.id and kind in ('deferred', 'unknown')
          and occurred_at >= m.since) past`)

/** Stores the pricing from statuses. The latest one of a message counts. */
export const recordPricing = (
  tx: Tx,
  priced: readonly (MessageRef & { pricing: Pricing; occurred_at: Date })[],
) =>
  tx.query(sql.prepared('record_whatsapp_pricing', object())`
    with latest as (
      select distinct on (p.team_id, p.message_id) p.*
      from ${rowsOf('p', { ...MESSAGE_REF, pricing: 'json', occurred_at: 'timestamptz' }, priced)}
      order by p.team_id, p.message_id, p.occurred_at desc, p.pricing::text
    )
    update whatsapp_messages m set pricing = l.pricing, pricing_at = l.occurred_at
    from latest l
    where m.team_id = l.team_id and m.id = l.message_id and (
      m.pricing_at is null or m.pricing_at < l.occurred_at
      or m.pricing_at = l.occurred_at and m.pricing::text > l.pricing::text)`)

const ownRow = row({ name: string(), phone_number_id: string() })

/**
 * Returns which of the numbers are ours, and whether the ID of the default number is known. Until then, any other may
 * be the default one.
 */
export async function ownNumbers(tx: Tx, ids: readonly string[]) {
  const rows = await tx.any(sql.prepared('own_whatsapp_numbers', ownRow)`
    select name, phone_number_id from whatsapp_numbers
    where phone_number_id = any(${sql.array(ids, 'text')}) or name = 'default'`)
  const isDefaultKnown = rows.some(({ name }) => name === 'default')
  return { isDefaultKnown, own: new Set(rows.map(({ phone_number_id }) => phone_number_id)) }
}

const foundRow = messageRefRow.concat(row({ provider_message_id: string() }))

export async function messagesByProviderIds(tx: Tx, ids: readonly string[]) {
  const rows = await tx.any(sql.prepared('whatsapp_by_provider_ids', foundRow)`
    select team_id, id as message_id, provider_message_id from whatsapp_messages
    where provider_message_id = any(${sql.array(ids, 'text')})`)
  return new Map(rows.map(({ provider_message_id, ...ref }) => [provider_message_id, ref]))
}

/** A message that the provider accepted. Its ID is null if the response could not be parsed. */
export type Acceptance = MessageRef & {
  accepted_at: Date
  provider_message_id: string | null
  /** The recipient's ID at the provider, if it differs from the number. */
  wa_id: string | null
}

/** Records that the provider accepted messages, in one statement. Stored values don't change. */
export async function recordAcceptances(tx: Tx, taken: readonly Acceptance[]): Promise<void> {
  const types = { ...MESSAGE_REF, accepted_at: 'timestamptz', provider_message_id: 'text', wa_id: 'text' }
  await tx.query(sql.prepared('record_whatsapp_acceptances', object())`
    with taken as materialized (
      select a.*
      from ${rowsOf('a', types, taken)} join lateral (
        select id from whatsapp_messages where team_id = a.team_id and id = a.message_id offset 0) m
        on m.id = a.message_id
    )
    update whatsapp_messages m set
      accepted_at = coalesce(m.accepted_at, a.accepted_at),
      provider_message_id = coalesce(m.provider_message_id, a.provider_message_id),
      wa_id = coalesce(a.wa_id, m.wa_id)
    from taken a
    where m.team_id = a.team_id and m.id = a.message_id`)
}

/** Raises locked rows to a status each, never to a lower one, in one statement. */
export async function raiseStatuses(tx: Tx, rises: readonly (MessageRef & { status: WhatsappStatus })[]) {
  const ladder = sql.array(WHATSAPP_LADDER, 'text')
  await tx.query(sql.prepared('raise_whatsapp_statuses', object())`
    with rise as materialized (
      select r.*
      from ${rowsOf('r', { ...MESSAGE_REF, status: 'text' }, rises)} join lateral (
        select id, status from whatsapp_messages where team_id = r.team_id and id = r.message_id offset 0) m
        on m.id = r.message_id
      where array_position(${ladder}, r.status) > array_position(${ladder}, m.status)
    )
    update whatsapp_messages m set status = r.status, was_sent = m.was_sent and r.status = 'sent' from rise r where m.team_id = r.team_id and m.id = r.message_id`)
}
