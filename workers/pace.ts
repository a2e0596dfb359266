/**
 * Lets a batch go at the pace of its sender, and passes on what the provider said about that pace.
 * Promises: one booking a batch, whatever its size; what may go soon waits here, with its job in hand, so that a
 * backlog is not fetched in circles; the rest is held back without counting an attempt. Knows no channel.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database, Tx } from '../db/postgres/pool.ts'
import type { Log } from '../db/process/log.ts'
import { bookSends, pauseSender, type Sender, slowSender } from '../db/senders/pace.ts'
import { recipientPauses } from '../db/senders/senders.sql.ts'
import type { Outcome } from './providers/provider.ts'
import type { Slots } from './slots.ts'

/** How far ahead sends are booked, in seconds: what is booked goes at the pace of its booking. */
const HORIZON = 5
/** A loop that was granted nothing fetches again only after this, in milliseconds. */
const BRAKE = 1_000

/** With the booking's horizon and a provider's own timeouts well within the expiry of a job, in milliseconds. */
const PATIENCE = 15_000

/** How long a sender in trouble rests when nothing tells for how long, in seconds. */
const TROUBLE_PAUSE = 5

/** Why something that might have gone did not: what a person is told. */
export const NOT_BEGUN = 'not begun: no send came free in time, or the sender was slowed just then'

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
  outcomesOf: (result: R) => Iterable<{ kind: string }>
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
    if ([...outcomesOf(result)].some(({ kind }) => kind === 'sender')) slots.halt(sender.key, clock())
    return result
  }
  const sent = await Promise.all(
    going.map(async ({ item, delay }) => {
      if (delay > 0) await sleep(delay * 1_000)
      const done = await slots.run(() => begin(item), PATIENCE)
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
  const wide = outcomes.filter((one) => one.kind === 'sender')
  const [longest] = wide.toSorted((one, other) => (other.wait_seconds ?? 0) - (one.wait_seconds ?? 0))
  if (longest === undefined) return
  const { trouble, detail: words } = longest
  const wait_seconds = trouble === 'slow' ? longest.wait_seconds : (longest.wait_seconds ?? TROUBLE_PAUSE)
  if (wait_seconds === undefined) {
    log.warn({ sender: sender.key, words }, 'the provider asks to slow down')
    await slowSender(tx, sender, now, booked_at)
  } else {
    log.error({ sender: sender.key, seconds: wait_seconds, words }, 'nothing can be sent for now')
    await pauseSender(tx, sender, new Date(now.getTime() + wait_seconds * 1_000), words, now)
  }
}

/** Splits off the items whose recipient is paused at this sender, with their wait in whole seconds. */
export async function withoutPaused<T>(
  database: Database,
  { key }: Sender,
  items: readonly T[],
  { recipientOf, now }: { recipientOf: (item: T) => string; now: Date },
): Promise<{ free: T[]; resting: { item: T; seconds: number }[] }> {
  const recipients = [...new Set(items.map(recipientOf))]
  const pauses = recipients.length === 0 ? [] : await recipientPauses(database, recipients, now)
  const ends = new Map(
    pauses
      .filter(({ sender }) => sender === key)
      .map(({ recipient, paused_until }) => [recipient, Date.parse(paused_until)]),
  )
  const resting = items.flatMap((item) => {
    const end = ends.get(recipientOf(item))
    return end === undefined ? [] : [{ item, seconds: Math.ceil((end - now.getTime()) / 1_000) }]
  })
  return { free: items.filter((item) => !ends.has(recipientOf(item))), resting }
}
