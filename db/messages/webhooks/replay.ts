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
export async function replayOf(tx: Tx, teamId: string, endpointId: string, filter: ReplayFilter) {
  checkEnabled(await requireEndpoint(tx, teamId, endpointId))
  if (filter.type !== undefined) checkTypes([filter.type])
  return { endpoint_id: endpointId, ...storedTimes(filter), seen: await seenNow(tx) }
}

export const countReplay = (tx: Tx, teamId: string, replay: Replay, most: number): Promise<number> =>
  countReplayable(tx, { team_id: teamId, id: replay.endpoint_id, limit: most }, revivedTimes(replay))

/** Finds the next messages to send again, after `done` earlier ones, and where to continue. Locks them. */
export async function replayableWebhooks(
  tx: Tx,
  teamId: string,
  replay: Replay,
  { cursor, done }: { cursor: ReplayCursor | null; done: number },
): Promise<{ ids: readonly string[]; cursor: ReplayCursor | null }> {
  const { endpoint_id, most } = replay
  checkEnabled(await requireEndpoint(tx, teamId, endpoint_id))
  const limit = Math.min(REPLAY_BATCH, (most ?? Number.POSITIVE_INFINITY) - done)
  const part = { team_id: teamId, id: endpoint_id, after: cursor?.after ?? NIL, limit }
  const ids = await replayable(tx, part, revivedTimes(replay))
  const last = ids.at(-1)
  const isLast = last === undefined || ids.length < limit || done + ids.length === most
  return { ids, cursor: isLast ? null : { after: last } }
}

/** Sends messages again. @returns how many. */
export async function replayWebhooks(
  { tx, now, queue }: At & { queue: Pick<Producer, 'reenqueue'> },
  teamId: string,
  { endpoint_id, what }: Replay,
  ids: readonly string[],
): Promise<number> {
  const refs = ids.map((id) => ({ team_id: teamId, id }))
  if (what === 'waiting') await requeueMessages({ tx, now, queue }, WEBHOOK, refs, { by: 'person' })
  else {
    await restartWebhooks(tx, refs, now)
    const notes = refs.map((ref) => requeueNote(ref, now))
    await storeEvents(tx, WEBHOOK, notes)
    const payloads = refs.map((ref) => WEBHOOK.payload.of({ ...ref, sender: endpoint_id }))
    await queue.reenqueue(tx, WEBHOOK.job, payloads)
  }
  return refs.length
}
