/**
 * Lets a batch go at the pace of its sender, and passes on what the provider said about that pace.
 * Promises: one booking a batch, whatever its size; what may go soon waits here, with its job in hand, so that a
 * backlog is not fetched in circles; the rest is held back without counting an attempt. Knows no channel.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../db/log.ts'
import type { Database, Tx } from '../db/pool.ts'
import { bookSends, pauseSender, type Sender, slowSender } from '../db/senders/pace.ts'
import { pausedSenders } from '../db/senders/table.ts'
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

/** How a batch is sent, and by whom; `outcomesOf` tells what the provider said. */
type Sending<T, R> = {
  sender: Sender
  slots: Slots
  clock: () => Date
  send: (item: T) => Promise<R>
  outcomesOf: (result: R) => Iterable<{ kind: string; sender_wide?: boolean }>
}

/**
 * Runs the sends that may go, each at its time and in a slot of its own. Not begun is one whose claim is lost, that
 * finds no slot in time, or whose sender has been slowed or paused by an answer since. A batch that may not go at all
 * is a pause instead. @returns what was sent, and what was not begun.
 */
export async function runPaced<T extends { job: { signal: AbortSignal } }, R>(
  { going, held, booked_at }: Paced<T>,
  { sender, slots, clock, send, outcomesOf }: Sending<T, R>,
): Promise<{ sent: R[]; late: T[] }> {
  if (going.length === 0 && held.length > 0) await sleep(BRAKE)
  const late: T[] = []
  const begin = async (item: T): Promise<R | null> => {
    if (item.job.signal.aborted || slots.isHalted(sender.key, booked_at)) return null
    const result = await send(item)
    if ([...outcomesOf(result)].some((outcome) => outcome.sender_wide)) slots.halt(sender.key, clock())
    return result
  }
  const sent = await Promise.all(
    going.map(async ({ item, delay }) => {
      if (delay > 0) await sleep(delay * 1_000)
      const done = await slots.run(async () => await begin(item), PATIENCE)
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

/** A pause of something smaller than a sender, such as a number and one recipient. */
export type Pause = { key: string; seconds: number; reason: string }

/** Splits off the items whose own key is paused, with the seconds that are left. One query. */
export async function withoutPaused<T>(
  database: Database,
  items: readonly T[],
  keyOf: (item: T) => string,
  now: Date,
) {
  const paused = items.length === 0 ? [] : await pausedSenders(database, now, items.map(keyOf))
  const ends = new Map(paused.map(({ key, paused_until }) => [key, Date.parse(paused_until)]))
  const resting = items.flatMap((item) => {
    const end = ends.get(keyOf(item))
    return end === undefined ? [] : [{ item, seconds: Math.ceil((end - now.getTime()) / 1_000) }]
  })
  return { free: items.filter((item) => !ends.has(keyOf(item))), resting }
}

/** Sets pauses, in one order for everyone. They are rare: each costs two statements. */
export async function pauseAll(tx: Tx, pauses: readonly Pause[], now: Date): Promise<void> {
  const sorted = [...pauses].sort((one, other) => (one.key < other.key ? -1 : 1))
  for (const { key, seconds, reason } of sorted) {
    await pauseSender(tx, { key, ceiling: 1 }, new Date(now.getTime() + seconds * 1_000), reason, now)
  }
}
