/** Rows of webhook_messages with their content, endpoints and state, and their attempts. */
import { sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import { isSuspended } from '../../accounts/teams/teams.sql.ts'
import { type DeliveryRef, REF } from '../../channels/channel.sql.ts'
import { recordDisabled } from '../../channels/events/webhooks.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { refRow, row, rowsOf } from '../../postgres/rows.ts'

const outgoingRow = row({
  team_id: string(),
  id: string(),
  endpoint_id: string(),
  event_id: string(),
  type: string(),
  body: string(),
  since: string(),
  url: string(),
  secret: mixed<Buffer>(),
  /** The previous secret during a rotation. */
  previous_secret: mixed<Buffer>().nullable(),
  /** The number of attempts since then, and their response statuses. */
  tries: number(),
  statuses: array(number()),
})
export type OutgoingWebhook = InferType<typeof outgoingRow>

/** Reads the messages that are still to be sent, to enabled endpoints of teams that can send. */
export const webhooksToDeliver = (tx: Tx, refs: readonly DeliveryRef[]) =>
  tx.any(sql.prepared('webhooks_to_deliver', outgoingRow)`
    select m.team_id, m.id, m.endpoint_id, m.event_id, m.type, m.body, coalesce(m.tries_from, m.created_at) as since,
      w.url, w.secret, case when w.previous_until > now() then w.previous_secret end as previous_secret,
      past.*
    from ${rowsOf('ref', REF, refs)}
      cross join lateral (
        select * from webhook_messages where team_id = ref.team_id and id = ref.id and unfinished offset 0) m
      cross join lateral (
        select * from webhook_endpoints
        where team_id = m.team_id and id = m.endpoint_id and state = 'enabled' offset 0) w
      cross join lateral (
        select count(*) as tries, coalesce(array_agg(a.status) filter (where a.status is not null), '{}') as statuses
        from webhook_events a
        where a.team_id = m.team_id and a.message_id = m.id and a.counts
          and a.occurred_at >= coalesce(m.tries_from, m.created_at)) past
    where not ${isSuspended(sql.fragment`m.team_id`)}`)

export type WebhookAttempt = {
  team_id: string
  endpoint_id: string
  id: string
  message_id: string
  at: Date
  status: number | null
  ms: number
  response: string
  counts: boolean
}

/** Fails the messages that wait for a disabled endpoint. They were created while it was being disabled. */
export const failSilenced = (tx: Tx, refs: readonly DeliveryRef[]) =>
  tx.query(sql.prepared('fail_silenced_webhooks', object())`
    with failed as (
      update webhook_messages m set status = 'failed'
      where (m.team_id, m.id) in (select * from ${rowsOf('ref', REF, refs)}) and m.unfinished
        and not exists (
          select from webhook_endpoints w
          where w.team_id = m.team_id and w.id = m.endpoint_id and w.state = 'enabled')
      returning m.team_id, m.id
    )
    ${recordDisabled(sql.fragment`failed`)}`)

export const failWaiting = (tx: Tx, teamId: string, endpointId: string) =>
  tx.any(sql.type(refRow)`
    with failed as (
      update webhook_messages set status = 'failed'
      where team_id = ${teamId} and endpoint_id = ${endpointId} and unfinished returning team_id, id
    ), noted as (${recordDisabled(sql.fragment`failed`)})
    select * from failed`)

const ASKED = { ...REF, endpoint_id: 'uuid', url: 'text' }

/** Locks and returns the messages that still exist, and whose endpoints still have the same URL, in ID order. */
export const lockUnchangedWebhooks = (
  tx: Tx,
  asked: readonly (DeliveryRef & { endpoint_id: string; url: string })[],
) =>
  tx.anyFirst(sql.prepared('webhooks_as_asked', refRow.pick(['id']))`
    with asked as materialized (select * from ${rowsOf('a', ASKED, asked)}
    ), held as materialized (
      select team_id, id, url from webhook_endpoints
      where (team_id, id) in (select team_id, endpoint_id from asked)
      order by team_id, id for no key update
    )
    select m.id
    from asked a
      join held w on w.team_id = a.team_id and w.id = a.endpoint_id and w.url = a.url
      join webhook_messages m on m.team_id = a.team_id and m.id = a.id
    order by m.team_id, m.id for key share of m`)

export type EndpointResult = {
  team_id: string
  id: string
  /** When it last accepted a message, and the first failure since then. Null without one. */
  success_at: Date | null
  failure_at: Date | null
}

const stateRow = refRow.concat(row({ failing_since: string().nullable(), enabled: boolean() }))

export type Round = {
  news: readonly EndpointResult[]
  attempts: readonly WebhookAttempt[]
  ended: readonly (DeliveryRef & { status: 'delivered' | 'failed' })[]
}

const NEWS = { ...REF, success_at: 'timestamptz', failure_at: 'timestamptz' }
const ATTEMPT = {
  ...{ team_id: 'uuid', endpoint_id: 'uuid', id: 'uuid', message_id: 'uuid', at: 'timestamptz' },
  ...{ status: 'int4', ms: 'int4', response: 'text', counts: 'bool' },
}

/**
 * Stores a round of attempts in one statement. Attempts that are already stored, or whose message was deleted, are
 * dropped. Endpoints are locked first, in ID order.
 * @returns the state of the endpoints.
 */
export const storeRound = (tx: Tx, { news, attempts, ended }: Round) =>
  tx.any(sql.prepared('store_webhook_round', stateRow)`
    with held as materialized (
      select w.team_id, w.id, n.success_at, n.failure_at
      from ${rowsOf('n', NEWS, news)}
        join webhook_endpoints w on w.team_id = n.team_id and w.id = n.id
      order by w.team_id, w.id for no key update of w
    ), noted as (
      update webhook_endpoints w set
        last_success_at = greatest(w.last_success_at, h.success_at),
        failing_since = case
          when h.success_at is not null then h.failure_at else coalesce(w.failing_since, h.failure_at) end
      from held h where w.team_id = h.team_id and w.id = h.id
      returning w.team_id, w.id, w.failing_since, w.state = 'enabled' as enabled
    ), attempt as materialized (select * from ${rowsOf('a', ATTEMPT, attempts)}
    ), there as materialized (
      -- What follows reads its rows from here, changed or not: a row that this statement has changed cannot be locked.
      select team_id, id from webhook_messages
      where (team_id, id) in (select team_id, message_id from attempt) order by team_id, id for key share
    ), tried as (
      insert into webhook_events (
        team_id, endpoint_id, event_key, message_id, occurred_at, status, ms, detail, counts, kind)
      select a.team_id, endpoint_id, uuid_send(a.id), message_id, at, status, ms, response, counts, 'attempt'
      from attempt a join there m on m.team_id = a.team_id and m.id = a.message_id
      on conflict do nothing
    ), ended as (
      update webhook_messages m set status = e.status
      from ${rowsOf('e', { ...REF, status: 'text' }, ended)} join there t on t.team_id = e.team_id and t.id = e.id
      where m.team_id = t.team_id and m.id = t.id and m.unfinished
    )
    select * from noted`)

/** Restarts ended messages. */
export async function restartWebhooks(tx: Tx, refs: readonly DeliveryRef[], now: Date): Promise<void> {
  const time = sql.timestamp(now)
  await tx.query(sql.type(object())`
    update webhook_messages set status = 'queued', requeued_at = ${time}, tries_from = ${time}
    where (team_id, id) in (select * from ${rowsOf('ref', REF, refs)})`)
}
