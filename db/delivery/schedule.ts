/**
 * Releases scheduled messages of every channel when they are due, and fails expired ones. A scheduled message has no
 * job until its release, which puts it in the lane of returning messages. A release, a reschedule and a cancellation
 * lock the row, so that only one succeeds. No team delays another.
 */
import { lockPass, movePass, type Pass, startedPasses } from '../accounts/teams/resumed.sql.ts'
import type { Channel, Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import { DELIVERIES, deliveryFrom } from '../channels/channels.sql.ts'
import { storeEvents } from '../channels/events/store-events.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/producer.ts'
import type { Note } from './requeue.sql.ts'
import { markExpired, releaseDue, whatIsDue } from './schedule.sql.ts'
import { lostOfTeam } from './sweep.sql.ts'

const RELEASE_BATCH = 500

/** Releases a batch of due messages. @returns how many. */
async function releaseBatch({ tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> }, channel: Channel) {
  const released = await releaseDue(tx, channel, RELEASE_BATCH)
  for (const [job, own] of Map.groupBy(released, (each) => each.job)) {
    const payloads = own.map((ref) => deliveryFrom(job).payload.of(ref))
    await queue.enqueue(tx, job, payloads)
  }
  return released.length
}

/**
 * Releases due messages of every channel, and waiting messages of resumed teams, in batches until none is left or
 * `closing` is aborted.
 */
export async function releaseAll(
  { database, queue }: { database: Database; queue: Pick<Producer, 'enqueue'> },
  closing?: AbortSignal,
): Promise<void> {
  for (let released = 1; released > 0 && !closing?.aborted; ) {
    released = 0
    const { channels, resumed } = await whatIsDue(database)
    for (const channel of channels)
      released += await database.transaction((tx) => releaseBatch({ tx, queue }, channel))
    for (const pass of resumed ? await startedPasses(database) : [])
      if (await database.transaction((tx) => resumeSlice({ tx, queue }, pass))) released += 1
  }
}

export type Expired = DeliveryRef & { expires_at: Date; at: Date }

/** Fails expired messages, each with a timeline entry. Messages accepted since then don't change. */
export async function failExpired(tx: Tx, channel: Deliverable, expired: readonly Expired[]) {
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

const RESUME_BATCH = 500

/**
 * Gives waiting messages of resumed teams new jobs, because workers delete the jobs of a suspended team. Slices
 * alternate between teams, so that a large team delays no other. @returns true if it did a slice.
 */
async function resumeSlice(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> },
  pass: Pass,
): Promise<boolean> {
  const after = await lockPass(tx, pass)
  if (after === null) return false
  const channel = DELIVERIES.find(({ job }) => job === pass.queue)
  // The workers of the newer version handle it.
  if (!channel) return false
  const { team_id } = pass
  const { lost, last } = await lostOfTeam(tx, channel, { team_id, after, size: RESUME_BATCH })
  const payloads = lost.map(({ id, sender }) => channel.payload.of({ team_id, id, sender }))
  await queue.enqueue(tx, channel.job, payloads)
  await movePass(tx, pass, last)
  return true
}
