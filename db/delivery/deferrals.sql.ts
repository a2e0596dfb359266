/** Queries for the last responses of deferred jobs, for the page of a queue. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import type { Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import { WEBHOOK } from '../channels/webhook.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { row, rowsOf } from '../postgres/rows.ts'
import { DELAY_EVENTS } from './waiting.sql.ts'

/** Events of an attempt. Webhooks have one kind for all attempts. */
const ATTEMPTS = [...DELAY_EVENTS, 'attempt']

const responseRow = row({ id: string(), response: string(), attempts: number() })

/** Returns the last response of each message that had an attempt, and how many attempts had none or deferred it. */
export function responsesTo(tx: Tx, channel: Deliverable, refs: readonly DeliveryRef[]) {
  const { events, message } = channel
  const isWebhook = channel.name === WEBHOOK.name
  const response = isWebhook ? sql.fragment`coalesce('HTTP ' || status, detail)` : sql.fragment`detail`
  return tx.any(sql.type(responseRow)`
    select r.id, e.response, e.attempts from ${rowsOf('r', { team_id: 'uuid', id: 'uuid' }, refs)}
      cross join lateral (
        select (array_agg(${response} order by occurred_at desc))[1] as response,
          count(distinct occurred_at) as attempts
        from ${events} v
        where v.team_id = r.team_id and v.${message} = r.id and kind = any(${sql.array(ATTEMPTS, 'text')})
      ) e
    where e.attempts > 0`)
}
