/**
 * How fast a sender (a number, an account, a relay) may send, shared by all workers through one row.
 * Promises: tokens are taken in blocks, so pacing costs a few statements a batch; a slowed sender recovers by a
 * tenth of its ceiling every minute; a paused one grants nothing until its pause ends. The time is the database's, read
 * with the locked row: no worker's clock counts.
 */

import { refill, untilToken } from '../bucket.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import { insertSenderEvents } from './events.sql.ts'
import { lockSender, type SenderRow, saveSender, senderByKey } from './senders.sql.ts'

const RECOVERY = 60_000
const SLOWEST = 0.2

/** A sender's state at one time. */
export type Pace = {
  rate: number
  slowed_at: Date | null
  tokens: number
  refilled_at: Date
  paused_until: Date | null
  pause_reason: string | null
  /** How often in a row nothing could be sent at all: see trouble.ts. */
  troubles: number
  troubled_at: Date | null
  accepted_at: Date | null
}

const dateOrNull = (text: string | null): Date | null => (text === null ? null : new Date(text))

/** How much of a second's sends may be saved up when the sender does not say. */
const SAVED_SECONDS = 1

/** The stored pace at `now`: recovered and refilled. Pure. @param saved how many seconds' sends may be saved up. */
export function paceAt(row: SenderRow, ceiling: number, now: Date, saved = SAVED_SECONDS): Pace {
  const slowedAt = dateOrNull(row.slowed_at)
  const minutes =
    slowedAt === null ? 0 : Math.max(0, Math.floor((now.getTime() - slowedAt.getTime()) / RECOVERY))
  const recovered = slowedAt === null ? ceiling : Math.min(ceiling, row.rate + minutes * (ceiling / 10))
  const bucket = { tokens: row.tokens, refilled_at: new Date(row.refilled_at) }
  return {
    rate: recovered,
    slowed_at:
      recovered >= ceiling || slowedAt === null ? null : new Date(slowedAt.getTime() + minutes * RECOVERY),
    ...refill(bucket, { rate: recovered, capacity: Math.max(1, recovered * saved) }, now),
    paused_until: dateOrNull(row.paused_until),
    pause_reason: row.pause_reason,
    troubles: row.troubles,
    troubled_at: dateOrNull(row.troubled_at),
    accepted_at: dateOrNull(row.accepted_at),
  }
}

/**
 * Books the next sends, in order: each waits until the bucket holds a token, then takes its cost, if need be on
 * credit. Those that would have to wait for longer than `horizon` seconds are not booked. Pure.
 * @param costs tokens for each send; one that costs more than the bucket holds delays those behind it.
 */
export function book(
  pace: Pace,
  costs: readonly number[],
  horizon: number,
  now: Date,
): { pace: Pace; booking: Booking } {
  if (pace.paused_until !== null && pace.paused_until > now) {
    const wait_seconds = Math.ceil((pace.paused_until.getTime() - now.getTime()) / 1_000)
    return {
      pace,
      booking: { delays: [], wait_seconds, reason: pace.pause_reason ?? 'the sender is paused' },
    }
  }
  if (pace.troubles > 0) return probe(pace, costs, now)
  const delays: number[] = []
  let { tokens } = pace
  const delay = () => untilToken(tokens, pace.rate)
  for (const cost of costs) {
    if (delay() > horizon) break
    delays.push(delay())
    tokens -= cost
  }
  const all = delays.length === costs.length
  return {
    pace: { ...pace, tokens, paused_until: null, pause_reason: null },
    booking: {
      delays,
      wait_seconds: all ? 0 : Math.max(1, Math.ceil(delay())),
      reason: 'the send rate is reached',
    },
  }
}

/** How long a probe has the sender to itself, in seconds: it may wait for a connection that never comes. */
export const PROBE = 30

/** After a pause one send probes whether the sender is mended; the others wait for its outcome. */
function probe(pace: Pace, costs: readonly number[], now: Date): { pace: Pace; booking: Booking } {
  const paused_until = new Date(now.getTime() + PROBE * 1_000)
  const reason = pace.pause_reason ?? 'the sender is probed'
  return {
    pace: costs.length === 0 ? pace : { ...pace, paused_until },
    booking: { delays: costs.slice(0, 1).map(() => 0), wait_seconds: 1, reason },
  }
}

/** Changes a sender's locked pace in the caller's transaction. `decide` gets the time of the lock. */
export async function changePace<T>(
  tx: Tx,
  { key, ceiling, saved_seconds }: Sender,
  decide: (pace: Pace, now: Date) => { pace: Pace; result: T },
): Promise<T> {
  const row = await lockSender(tx, key, ceiling)
  const now = new Date(row.now)
  const found = paceAt(row, ceiling, now, saved_seconds)
  const { pace, result } = decide(found, now)
  if (pace !== found) await saveSender(tx, key, pace)
  return result
}

/** What is paced. */
export type Sender = {
  /** `whatsapp:<number id>`, `ses:<region>`, `smtp:<relay>`. */
  key: string
  /** Sends per second. */
  ceiling: number
  /** How many seconds' sends may be saved up while idle; 1 when absent. */
  saved_seconds?: number
  /** Paced only once the provider has asked for it, until it has recovered to its ceiling. */
  on_demand?: boolean
}

/** When the first sends of a batch may go, in seconds from now; for the rest, when to ask again and why. */
export type Booking = { delays: number[]; wait_seconds: number; reason: string }

/** Books sends in a transaction of its own; `on_demand` senders at full pace cost a single read. */
export async function bookSends(
  database: Database,
  sender: Sender,
  costs: readonly number[],
  horizon: number,
): Promise<Booking> {
  if (sender.on_demand && (await isAtFullPace(database, sender))) {
    return { delays: costs.map(() => 0), wait_seconds: 0, reason: '' }
  }
  return database.transaction(
    async (tx) =>
      await changePace(tx, sender, (pace, now) => {
        const booked = book(pace, costs, horizon, now)
        return { pace: booked.pace, result: booked.booking }
      }),
  )
}

async function isAtFullPace(tx: Tx, { key, ceiling }: Sender): Promise<boolean> {
  const row = await senderByKey(tx, key)
  if (row === null) return true
  const now = new Date(row.now)
  const { rate, paused_until, troubles } = paceAt(row, ceiling, now)
  return rate >= ceiling && troubles === 0 && (paused_until === null || paused_until <= now)
}

/**
 * Halves the sender's rate: the provider said that it is too fast. Several calls within a second count once, and so
 * do refusals of what was let go before the last halving: they say nothing about the pace since.
 * @param since when what was refused had been let go.
 */
export async function slowSender(tx: Tx, sender: Sender, since: Date, words: string): Promise<void> {
  const slowed_at = await changePace<Date | null>(tx, sender, (pace, now) => {
    const floor = Math.min(since.getTime(), now.getTime() - 1_000)
    if (pace.slowed_at !== null && pace.slowed_at.getTime() > floor) return { pace, result: null }
    const rate = Math.max(SLOWEST, pace.rate / 2)
    const slowed: Pace = { ...pace, rate, slowed_at: now, tokens: Math.min(0, pace.tokens) }
    // The timeline tells when it began, not each further halving.
    return { pace: slowed, result: pace.slowed_at === null ? now : null }
  })
  if (slowed_at !== null)
    await insertSenderEvents(tx, [
      { sender: sender.key, kind: 'slowed', occurred_at: slowed_at, detail: words },
    ])
}

/** Stops the sender for so many seconds, with the provider's words. A longer pause that stands already stays. */
export async function pauseSender(tx: Tx, sender: Sender, seconds: number, reason: string): Promise<void> {
  const paused_at = await changePace<Date | null>(tx, sender, (pace, now) => {
    const until = new Date(now.getTime() + seconds * 1_000)
    if (pace.paused_until !== null && pace.paused_until >= until) return { pace, result: null }
    const isTold = pace.paused_until !== null && pace.paused_until > now && pace.pause_reason === reason
    return { pace: { ...pace, paused_until: until, pause_reason: reason }, result: isTold ? null : now }
  })
  if (paused_at !== null)
    await insertSenderEvents(tx, [
      { sender: sender.key, kind: 'paused', occurred_at: paused_at, detail: reason },
    ])
}
