/**
 * What waits for its time, for every channel: let go when that has come, given up when it has expired; moved and
 * cancelled by messages/scheduled.ts. A row waits, and no job: let go, it gets one at a place of those that come back.
 * Promises: of a release, a move and a cancellation one wins, as each holds the row; no team's rush holds up another's.
 */
import { startedPasses } from '../accounts/teams/resumed.sql.ts'
import type { Channel, Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import { deliveryFrom } from '../channels/channels.sql.ts'
import { storeEvents } from '../channels/events/store-events.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/producer.ts'
import type { Note } from './requeue.sql.ts'
import { resumeSlice } from './resume.ts'
import { dueChannels, markExpired, releaseDue } from './schedule.sql.ts'

/** How many are let go in one transaction. */
const RELEASE_BATCH = 500

/** Lets go a batch of what is due. @returns how many. */
async function releaseBatch({ tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> }, channel: Channel) {
  const released = await releaseDue(tx, channel, RELEASE_BATCH)
  for (const [job, own] of Map.groupBy(released, (each) => each.job)) {
    const payloads = own.map((ref) => deliveryFrom(job).payload.of(ref))
    await queue.enqueue(tx, job, payloads)
  }
  return released.length
}

/**
 * Releases what is due of every channel, and what waits of resumed teams, batch after batch, until nothing is left or
 * `closing` is aborted.
 */
export async function releaseAll(
  { database, queue }: { database: Database; queue: Pick<Producer, 'enqueue'> },
  closing?: AbortSignal,
): Promise<void> {
  for (let released = 1; released > 0 && !closing?.aborted; ) {
    released = 0
    for (const channel of await dueChannels(database))
      released += await database.transaction((tx) => releaseBatch({ tx, queue }, channel))
    for (const pass of await startedPasses(database))
      if (await database.transaction((tx) => resumeSlice({ tx, queue }, pass))) released += 1
  }
}

/** A message whose time is over. */
export type Expired = DeliveryRef & { expires_at: Date; at: Date }

/** Gives up what has expired, each with its entry in the timeline; what was taken meanwhile is left alone. */
export async function giveUpExpired(tx: Tx, channel: Deliverable, expired: readonly Expired[]) {
  const [first] = expired
  if (!first) return
  const given = await markExpired(tx, channel, expired, first.at)
  const ids = new Set(given.map(({ id }) => id))
  const notes = expired.flatMap(({ team_id, id, expires_at, at }): Note[] => {
    if (!ids.has(id)) return []
    const end = expires_at.toISOString()
    const event = { event_key: `expired:${end}`, kind: 'gave_up', occurred_at: at } as const
    return [{ team_id, id, ...event, detail: `expired: it was not sent before ${end}` }]
  })
  await storeEvents(tx, channel, notes)
}
