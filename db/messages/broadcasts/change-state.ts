/** Changes the state of a broadcast and queues its webhook, in one transaction. The caller decides if it is allowed. */
import type { BroadcastEvent } from '../../channels/events/domain-event.ts'
import { publish } from '../../channels/events/webhooks.ts'
import type { Tx } from '../../postgres/pool.ts'
import { type BroadcastKey, type StateChange, updateState } from './broadcasts.sql.ts'
import type { BroadcastState } from './state.ts'
import { broadcastView } from './view.ts'

const KIND_OF: Partial<Record<BroadcastState, BroadcastEvent['kind']>> = {
  sending: 'started',
  paused: 'paused',
  sent: 'sent',
  cancelled: 'cancelled',
}

/** The second of two concurrent changes fails. @returns the row, or null if not in a `from` state. */
export async function changeState(tx: Tx, key: BroadcastKey, change: StateChange, now: Date) {
  const changed = await updateState(tx, key, change, now)
  if (!changed) return null
  const { has_listeners, ...row } = changed
  const kind = KIND_OF[row.state]
  // A resume after a pause isn't a start.
  if (has_listeners && kind !== undefined && !(kind === 'started' && change.audience === undefined)) {
    const { team_id, id, state_reason } = row
    const { name, from, subject, tags, template_id, idempotency_key, audience, stats } = await broadcastView(
      tx,
      row,
    )
    const domainEvent = {
      ...{ team_id, id, kind, occurred_at: now, detail: state_reason ?? '' },
      subject: 'broadcast',
      about: { name, from, subject, tags, template_id, idempotency_key, audience, stats },
    } as const
    await publish(tx, [domainEvent])
  }
  return row
}
