/**
 * Rate limits of senders (a number, an account, a relay, an endpoint), shared by all workers through one row. Tokens
 * are reserved in blocks, with a few statements for any number of senders. A slowed sender recovers by a tenth of its
 * ceiling every minute, and a paused one grants nothing. The time is the database's, read with the row.
 */

import type { Database, Tx } from '../../postgres/pool.ts'
import { refill, untilToken } from '../../process/bucket.ts'
import {
  type CachedSender,
  lockSenders,
  type ReadSenders,
  type SenderRow,
  saveSenders,
  sendersByKeys,
} from './senders.sql.ts'

const RECOVERY_MS = 60_000
const SLOWEST_RATE = 0.2

/** A sender's state at one time. */
export type Pace = Omit<CachedSender, 'key'>
type Circuit = Pick<Pace, 'paused_until' | 'troubles' | 'accepted_at' | 'deferrals'>

const dateOrNull = (text: string | null): Date | null => (text === null ? null : new Date(text))

/** How many seconds' worth of sends can be saved up, unless the sender has its own value. */
const SAVED_SECONDS = 1

/**
 * Returns the stored rate at `now`, recovered and refilled. @param saved how many seconds' worth of sends can be
 * saved up.
 */
export function paceAt(row: SenderRow, ceiling: number, now: Date, saved = SAVED_SECONDS): Pace {
  const slowedAt = dateOrNull(row.slowed_at)
  const minutes =
    slowedAt === null ? 0 : Math.max(0, Math.floor((now.getTime() - slowedAt.getTime()) / RECOVERY_MS))
  const recovered = slowedAt === null ? ceiling : Math.min(ceiling, row.rate + minutes * (ceiling / 10))
  const bucket = { tokens: row.tokens, refilled_at: new Date(row.refilled_at) }
  return {
    rate: recovered,
    slowed_at:
      recovered >= ceiling || slowedAt === null ? null : new Date(slowedAt.getTime() + minutes * RECOVERY_MS),
    ...refill(bucket, { rate: recovered, capacity: Math.max(1, recovered * saved) }, now),
    paused_until: dateOrNull(row.paused_until),
    pause_reason: row.pause_reason,
    troubles: row.troubles,
    troubled_at: dateOrNull(row.troubled_at),
    accepted_at: dateOrNull(row.accepted_at),
    deferrals: row.deferrals ?? null,
  }
}

/**
 * Reserves the next sends in order. Each waits until the bucket has a token, then removes its cost, on credit if
 * necessary. Sends that would wait longer than `horizon` seconds aren't reserved.
 * @param costs tokens for each send. One that exceeds the bucket delays those after it.
 */
export function reserve(pace: Pace, costs: readonly number[], horizon: number, now: Date) {
  const state = stateAt(pace, now)
  if (pace.paused_until !== null && pace.paused_until > now) {
    const wait_seconds = Math.ceil(state.wait_seconds)
    const reason = pace.pause_reason ?? 'the sender is paused'
    return { pace, reservation: { delays: [], wait_seconds, reason, state } }
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
    reservation: {
      delays,
      wait_seconds: all ? 0 : Math.max(1, Math.ceil(delay())),
      reason: 'the send rate is reached',
      state,
    },
  }
}

/** How long a probe has the sender to itself, in seconds. Its connection may never be established. */
export const PROBE_SECONDS = 30

/** After a pause, one send probes the sender. The others wait for its outcome. */
function probe(pace: Pace, costs: readonly number[], now: Date): { pace: Pace; reservation: Reservation } {
  const paused_until = new Date(now.getTime() + PROBE_SECONDS * 1_000)
  const reason = pace.pause_reason ?? 'a message is testing the sender'
  return {
    pace: costs.length === 0 ? pace : { ...pace, paused_until },
    reservation: {
      delays: costs.slice(0, 1).map(() => 0),
      wait_seconds: 1,
      reason,
      state: stateAt(pace, now),
    },
  }
}

/** The state of a sender: its circuit breaker is open while it is paused, and half-open while it is probed. */
export type SenderState = {
  /** The time of this state. */
  now: Date
  /** Seconds until the next check, or 0 if it can send. */
  wait_seconds: number
  /** True if it is being probed: one message at a time, until one is accepted. */
  probing: boolean
  /** When the provider accepted a message again after the last failure. */
  accepted_at: Date | null
  /** True if its last messages were deferred with similar responses. An acceptance must then be recorded. */
  deferring: boolean
}

/** Returns the state of a sender with this rate at a time. Pure. */
export const stateAt = (circuit: Circuit, now: Date): SenderState => ({
  now,
  wait_seconds: Math.max(0, ((circuit.paused_until?.getTime() ?? 0) - now.getTime()) / 1_000),
  probing: circuit.troubles > 0,
  accepted_at: circuit.accepted_at,
  deferring: circuit.deferrals !== null,
})

/** A change of one sender's rate. `decide` receives the time of the lock. */
type PaceChange<T> = { sender: Sender; decide(pace: Pace, now: Date): { pace: Pace; result: T } }

/**
 * Changes the rates of senders, each once, locked in key order. At most three statements for any number of senders, in
 * the caller's transaction.
 * @returns the results in the order given.
 */
export async function changePaces<T>(tx: Tx, changes: readonly PaceChange<T>[]): Promise<T[]> {
  const senders = changes.map(({ sender }) => sender)
  const rows = await lockSenders(tx, senders)
  const saved: ({ key: string } & Pace)[] = []
  const results = changes.map(({ sender: { key, ceiling, saved_seconds }, decide }) => {
    const row = rows.get(key)
    if (!row) throw new Error(`the row of sender ${key} was deleted just now`)
    const now = new Date(row.now)
    const found = paceAt(row, ceiling, now, saved_seconds)
    const { pace, result } = decide(found, now)
    if (pace !== found) saved.push({ key, ...pace })
    return result
  })
  if (saved.length > 0) await saveSenders(tx, saved)
  return results
}

/** A sender with a rate limit. */
export type Sender = {
  /** Its provider or channel, and its name: `smtp:<relay>`, `ses:<region>`. */
  key: string
  ceiling: number
  /** How many seconds' worth of sends can be saved up while idle, by default 1. */
  saved_seconds?: number
  /** Limited only after the provider has requested it, until it has recovered to its ceiling. */
  on_demand?: boolean
  /**
   * How many of its sends can be in flight in one process, for senders that share slots with many others. Starts with
   * one. Slow or failing senders share half of the slots. Absent: all slots.
   */
  at_once?: number
}

/** When the first sends of a batch can start, in seconds from now. For the rest, when to try again and why. */
export type Reservation = { delays: number[]; wait_seconds: number; reason: string; state: SenderState }

type Wanted = { sender: Sender; costs: readonly number[] }

/**
 * Reserves sends through any number of senders, each named once, in its own transaction. All senders
 * `on_demand` at full rate need only one query.
 * @param known the rows of the senders `on_demand`, if they were read just now. They need no query then.
 * @returns a reservation for each, in the order given.
 */
export async function reserveSends(
  database: Database,
  wanted: readonly Wanted[],
  horizon: number,
  known?: ReadSenders,
) {
  const reserved = await unpaced(database, wanted, known)
  const paced = wanted.filter(({ sender }) => !reserved.has(sender.key))
  const changes = paced.map(({ sender, costs }) => ({
    sender,
    decide: (pace: Pace, now: Date) => {
      const { pace: left, reservation: result } = reserve(pace, costs, horizon, now)
      return { pace: left, result }
    },
  }))
  const made = changes.length === 0 ? [] : await database.transaction((tx) => changePaces(tx, changes))
  for (const [index, { sender }] of paced.entries()) {
    const reservation = made[index]
    if (reservation) reserved.set(sender.key, reservation)
  }
  return wanted.flatMap(({ sender }) => reserved.get(sender.key) ?? [])
}

async function unpaced(
  tx: Tx,
  wanted: readonly Wanted[],
  known?: ReadSenders,
): Promise<Map<string, Reservation>> {
  const optional = wanted.filter(({ sender }) => sender.on_demand)
  if (optional.length === 0) return new Map()
  const keys = optional.map(({ sender }) => sender.key)
  const { now, rows } = known ?? (await sendersByKeys(tx, keys))
  return new Map(
    optional.flatMap(({ sender: { key, ceiling }, costs }): [string, Reservation][] => {
      const row = rows.get(key)
      const pace = row ? paceAt(row, ceiling, now) : null
      const state = stateAt(pace ?? UNTROUBLED, now)
      if (pace && (pace.rate < ceiling || state.probing || state.wait_seconds > 0)) return []
      return [[key, { delays: costs.map(() => 0), wait_seconds: 0, reason: '', state }]]
    }),
  )
}

/** The initial state of a sender without a row. */
export const UNTROUBLED: Circuit = { paused_until: null, troubles: 0, accepted_at: null, deferrals: null }

/**
 * Halves the rate after the provider reported that it is too fast. Several calls within a second count once, and so
 * do sends that were released before the last halving.
 * @param since when the rejected send was released.
 * @returns `isNews` if this starts a slow period. The timeline records its start only.
 */
export function slowed(pace: Pace, now: Date, since: Date): { pace: Pace; isNews: boolean } {
  const floor = Math.min(since.getTime(), now.getTime() - 1_000)
  if (pace.slowed_at !== null && pace.slowed_at.getTime() > floor) return { pace, isNews: false }
  const rate = Math.max(SLOWEST_RATE, pace.rate / 2)
  return {
    pace: { ...pace, rate, slowed_at: now, tokens: Math.min(0, pace.tokens) },
    isNews: pace.slowed_at === null,
  }
}

/** Pauses it for some seconds, with a reason. A longer existing pause stays. Pure. */
export function paused(pace: Pace, now: Date, { seconds, reason }: { seconds: number; reason: string }) {
  const until = new Date(now.getTime() + seconds * 1_000)
  if (pace.paused_until !== null && pace.paused_until >= until) return { pace, isNews: false }
  const isKnown = pace.paused_until !== null && pace.paused_until > now && pace.pause_reason === reason
  return { pace: { ...pace, paused_until: until, pause_reason: reason }, isNews: !isKnown }
}
