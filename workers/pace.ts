/**
 * Lets a batch go at the pace of its sender, and passes on what the provider said about that pace.
 * Promises: one booking a batch, whatever its size; what may go soon waits here, with its job in hand, so that a
 * backlog is not fetched in circles; the rest is held back without counting an attempt. Knows no channel.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../db/log.ts'
import type { Database, Tx } from '../db/pool.ts'
import { bookSends, pauseSender, type Sender, slowSender } from '../db/senders/pace.ts'
import type { Outcome } from './providers/provider.ts'
import type { Slots } from './slots.ts'

/** How far ahead sends are booked, in seconds: what is booked goes at the pace of its booking. */
const HORIZON = 5
/** A loop that was granted nothing fetches again only after this, in milliseconds. */
const BRAKE = 1_000

/** With the booking's horizon and a provider's own timeouts well within the expiry of a job, in milliseconds. */
const PATIENCE = 15_000

/** A batch, split: what may go, with its wait in seconds, and what has to be put off. */
export type Paced<T> = {
  going: { item: T; delay: number }[]
  held: T[]
  /** For how many seconds, and why. */
  wait_seconds: number
  reason: string
  /** When this was booked: a refusal of these sends says nothing about a pace that was lowered since. */
  booked_at: Date
}

/** Books a batch with its sender. */
export async function paceBatch<T>(
  database: Database,
  sender: Sender,
  items: readonly T[],
  { costOf, now }: { costOf: (item: T) => number; now: Date },
): Promise<Paced<T>> {
  if (items.length === 0) return { going: [], held: [], wait_seconds: 0, reason: '', booked_at: now }
  const costs = items.map(costOf)
  const { delays, wait_seconds, reason } = await bookSends(database, sender, costs, { horizon: HORIZON, now })
  const going = items.slice(0, delays.length).map((item, at) => ({ item, delay: delays[at] ?? 0 }))
  return { going, held: items.slice(delays.length), wait_seconds, reason, booked_at: now }
}

/**
 * Runs the sends that may go, each at its time and in a slot of its own; one whose claim is lost, or that finds no
 * slot in time, is not begun. A batch that may not go at all is a pause instead.
 * @returns what was sent, and what was not begun.
 */
export async function runPaced<T extends { job: { signal: AbortSignal } }, R>(
  { going, held }: Paced<T>,
  slots: Slots,
  send: (item: T) => Promise<R>,
): Promise<{ sent: R[]; late: T[] }> {
  if (going.length === 0 && held.length > 0) await sleep(BRAKE)
  const late: T[] = []
  const sent = await Promise.all(
    going.map(async ({ item, delay }) => {
      if (delay > 0) await sleep(delay * 1_000)
      const done = await slots.run(async () => (item.job.signal.aborted ? null : await send(item)), PATIENCE)
      if (done === null) late.push(item)
      return done
    }),
  )
  return { sent: sent.filter((done) => done !== null), late }
}

/** Slows or pauses the sender, and says so, when an outcome is about more than its message. Last in its transaction. */
export async function applyPace(
  tx: Tx,
  sender: Sender,
  outcomes: readonly Outcome[],
  { booked_at, now, log }: { booked_at: Date; now: Date; log: Log },
): Promise<void> {
  const wide = outcomes.filter((outcome) => outcome.kind === 'deferred' && outcome.sender_wide)
  const [first] = wide
  if (first === undefined) return
  const pauses = wide.flatMap((outcome) =>
    outcome.kind === 'deferred' && outcome.wait_seconds !== undefined
      ? [{ seconds: outcome.wait_seconds, words: outcome.detail }]
      : [],
  )
  const [longest] = pauses.sort((one, other) => other.seconds - one.seconds)
  if (longest === undefined) {
    log.warn({ sender: sender.key, words: first.detail }, 'the provider asks to slow down')
    await slowSender(tx, sender, now, booked_at)
  } else {
    log.error({ sender: sender.key, ...longest }, 'nothing can be sent for now')
    const until = new Date(now.getTime() + longest.seconds * 1_000)
    await pauseSender(tx, sender, until, longest.words, now)
  }
}
