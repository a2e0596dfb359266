/** Webhooks: events to a team's servers, delivered, requeued and swept like messages, but not of a channel. */
import { sql } from 'slonik'
import type { Deliverable } from './channel.sql.ts'

export const WEBHOOK: Deliverable<'deliver-webhook'> = {
  name: 'webhook',
  noun: 'webhook',
  job: 'deliver-webhook',
  test: false,
  payload: {
    of: ({ team_id, id, sender }) => ({ team_id, message_id: id, endpoint_id: sender ?? '' }),
    ref: ({ team_id, message_id }) => ({ team_id, id: message_id }),
  },
  job_of: sql.fragment`'deliver-webhook'`,
  sender_of: sql.fragment`endpoint_id::text`,
  rows: sql.fragment`webhook_messages`,
  undelivered: sql.fragment`unfinished`,
  scheduled: sql.fragment`false`,
  expired: sql.fragment`false`,
  events: sql.fragment`webhook_events`,
  message: sql.fragment`message_id`,
  further: { columns: sql.fragment``, types: {} },
  // A message to a disabled endpoint would fail again immediately.
  refused: sql.fragment`(status = 'failed' and exists (
    select from webhook_endpoints w where w.team_id = m.team_id and w.id = m.endpoint_id and w.state = 'enabled'))`,
  timed_out: sql.fragment`false`,
  emptied: sql.fragment`false`,
  given_up_as: 'failed',
}

/** The prefix of webhook sender keys. Each endpoint is one. */
export const WEBHOOK_SENDERS = 'webhook:'
