/** Shows one webhook message: its body, its attempts, its state and why it waits. */

import { WEBHOOK, WEBHOOK_SENDERS } from '../../channels/webhook.sql.ts'
import { deliveryState } from '../../delivery/requeue.sql.ts'
import { describeWaiting } from '../../delivery/waiting.ts'
import { RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { TEXTS } from '../texts.ts'
import { requireEndpoint } from './endpoints.ts'
import { readHistory, webhookByEvent } from './listing.sql.ts'

export type ShownWebhook = Awaited<ReturnType<typeof showWebhook>>

/**
 * Returns the message about one event. `waiting` is null if its delivery has ended. @throws RequestError not_found.
 */
export async function showWebhook(
  { tx, now }: { tx: Tx; now: Date },
  teamId: string,
  names: { endpoint_id: string; event_id: string },
) {
  await requireEndpoint(tx, teamId, names.endpoint_id)
  const row = await webhookByEvent(tx, teamId, names)
  if (!row) throw new RequestError('not_found', TEXTS.noWebhookMessage)
  const ref = { team_id: teamId, id: row.id }
  const history = await readHistory(tx, ref)
  const attempts = history.flatMap(({ kind, occurred_at: at, detail: response, status, ms }) =>
    kind === 'attempt' ? [{ at, status, ms: ms ?? 0, response }] : [],
  )
  const events = history.flatMap(({ kind, occurred_at, detail }) =>
    kind === 'attempt' ? [] : [{ kind, occurred_at, detail }],
  )
  const timeline = history.map(({ kind, occurred_at, detail, status }) =>
    kind === 'attempt'
      ? { kind: 'deferred', occurred_at, detail: status === null ? detail : `HTTP ${status}` }
      : { kind, occurred_at, detail },
  )
  const sender = `${WEBHOOK_SENDERS}${row.endpoint_id}`
  const state = await deliveryState(tx, WEBHOOK, ref)
  const waiting = await describeWaiting(tx, { id: row.id, state, sender, now }, timeline)
  return { ...row, attempts, events, waiting }
}
