/**
 * Sends webhook messages again with the same IDs and bytes, in batches (maintenance/background-jobs). Skips messages
 * that were created or changed after the request. Stops if the endpoint is disabled.
 */
import { NIL } from 'uuid'
import { storeEvents } from '../../channels/events/store-events.ts'
import { WEBHOOK } from '../../channels/webhook.sql.ts'
import { requeueMessages, requeueNote } from '../../delivery/requeue.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { seenNow } from '../../postgres/snapshot.sql.ts'
import type { Producer } from '../../queue/producer.ts'
import { revivedTimes, type Stored, storedTimes } from '../stored-times.ts'
import { checkEnabled, checkTypes, requireEndpoint } from './endpoints.ts'
import { countReplayable, type ReplayFilter, replayable } from './listing.sql.ts'
import { restartWebhooks } from './messages.sql.ts'

const REPLAY_BATCH = 1_000

/** The stored form of the selection. */
export type Replay = Stored<ReplayFilter> & {
  endpoint_id: string
  /** Excludes messages that changed after this snapshot. `most` absent: all of them. */
  seen: string
  most?: number | undefined
}
/** The last message of the previous batch. */
type ReplayCursor = { after: string }

/**
 * Creates a replay to store. @throws RequestError not_found, bad_request for an unknown type or a disabled endpoint.
 */
export async function replayOf(
  tx: Tx,
  teamId: string,
  endpointId: string,
  filter: ReplayFilter,
): Promise<Replay> {
  checkEnabled(await requireEndpoint(tx, teamId, endpointId))
  if (filter.type !== undefined) checkTypes([filter.type])
  return { endpoint_id: endpointId, ...storedTimes(filter), seen: await seenNow(tx) }
}

export const countReplay = (tx: Tx, teamId: string, replay: Replay, most: number): Promise<number> =>
  countReplayable(tx, { team_id: teamId, id: replay.endpoint_id, limit: most }, revivedTimes(replay))

/** Sends the next batch again. @returns how many, and where to continue. Null at the end. */
export async function replaySlice(
  { tx, now, queue }: At & { queue: Pick<Producer, 'reenqueue'> },
  teamId: string,
  replay: Replay,
  { cursor, done }: { cursor: ReplayCursor | null; done: number },
): Promise<{ replayed: number; cursor: ReplayCursor | null }> {
  const { endpoint_id, what, most } = replay
  checkEnabled(await requireEndpoint(tx, teamId, endpoint_id))
  const { after } = cursor ?? { after: NIL }
  const limit = Math.min(REPLAY_BATCH, (most ?? Number.POSITIVE_INFINITY) - done)
  const refs = await replayable(tx, { team_id: teamId, id: endpoint_id, after, limit }, revivedTimes(replay))
  const last = refs.at(-1)
  if (last === undefined) return { replayed: 0, cursor: null }
  if (what === 'waiting') await requeueMessages({ tx, now, queue }, WEBHOOK, refs, { by: 'person' })
  else {
    await restartWebhooks(tx, refs, now)
    const notes = refs.map((ref) => requeueNote(ref, now))
    await storeEvents(tx, WEBHOOK, notes)
    const payloads = refs.map((ref) => WEBHOOK.payload.of({ ...ref, sender: endpoint_id }))
    await queue.reenqueue(tx, WEBHOOK.job, payloads)
  }
  const isLast = refs.length < limit || done + refs.length === most
  return { replayed: refs.length, cursor: isLast ? null : { after: last.id } }
}
