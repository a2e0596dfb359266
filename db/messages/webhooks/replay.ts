/**
 * Sends an endpoint messages again, the same ids and the same bytes, a lot at a time (db/work): what failed, all that
 * is over, or at once what waits for its next try.
 * Promises: what was made, or failed once more, since it began is left alone; it ends when the endpoint is disabled.
 */

import { storeEvents } from '../../channels/happenings/store-events.ts'
import { WEBHOOK } from '../../channels/webhook.sql.ts'
import { requeueMessages, requeueNote } from '../../delivery/requeue.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import type { Producer } from '../../queue/boss.ts'
import { checkEnabled, checkTypes, endpointOrRefusal } from './endpoints.ts'
import { type ReplayFilter, replayable } from './listing.sql.ts'
import { restartWebhooks } from './messages.sql.ts'

/** How many messages are begun once more in one transaction. */
const LOT = 1_000
const NO_ID = '00000000-0000-0000-0000-000000000000'

/** What is to be sent again, as it is stored. */
export type Replay = {
  endpoint_id: string
  what: ReplayFilter['what']
  from?: string
  to?: string
  type?: string
}
/** The last message of the lots before, and until when messages count. */
export type ReplayCursor = { after: string; until: string }

/** A replay to be stored. @throws Refusal not_found, bad_request for an unknown type, or while it is disabled. */
export async function replayOf(
  tx: Tx,
  teamId: string,
  endpointId: string,
  { what, from, to, type }: ReplayFilter,
): Promise<Replay> {
  checkEnabled(await endpointOrRefusal(tx, teamId, endpointId))
  if (type !== undefined) checkTypes([type])
  return {
    endpoint_id: endpointId,
    what,
    ...(from === undefined ? {} : { from: from.toISOString() }),
    ...(to === undefined ? {} : { to: to.toISOString() }),
    ...(type === undefined ? {} : { type }),
  }
}

const earlier = (one: string, other: string | undefined): Date =>
  new Date(other !== undefined && Date.parse(other) < Date.parse(one) ? other : one)

/** Sends the next lot again. @returns how many, and where to go on; null at the end. @throws Refusal. */
export async function replaySlice(
  { tx, now, queue }: At & { queue: Pick<Producer, 'reenqueue'> },
  teamId: string,
  { endpoint_id, what, from, to, type }: Replay,
  cursor: ReplayCursor | null,
): Promise<{ replayed: number; cursor: ReplayCursor | null }> {
  checkEnabled(await endpointOrRefusal(tx, teamId, endpoint_id))
  const { after, until } = cursor ?? { after: NO_ID, until: now.toISOString() }
  const filter = { what, from: from === undefined ? undefined : new Date(from), to: earlier(until, to), type }
  const refs = await replayable(tx, { team_id: teamId, id: endpoint_id, after, limit: LOT }, filter)
  const last = refs.at(-1)
  if (last === undefined) return { replayed: 0, cursor: null }
  if (what === 'waiting') await requeueMessages({ tx, now, queue }, WEBHOOK, refs, { by: 'person' })
  else {
    await restartWebhooks(tx, refs, now)
    await storeEvents(
      tx,
      WEBHOOK,
      refs.map((ref) => requeueNote(ref, now)),
    )
    await queue.reenqueue(
      tx,
      WEBHOOK.job,
      refs.map((ref) => ({ team_id: teamId, message_id: ref.id, endpoint_id })),
    )
  }
  return { replayed: refs.length, cursor: refs.length < LOT ? null : { after: last.id, until } }
}
