/**
 * Decides how many messages to claim, and when to send each through its sender. It claims nothing for a paused
 * sender. All workers together claim one message for a sender that is being probed.
 */
import type { DeliveryJob } from '../../db/channels/channel.sql.ts'
import { failingSenders, stateOfSender } from '../../db/delivery/senders/circuit-breaker.ts'
import { reserveSends, type Sender } from '../../db/delivery/senders/rate-limit.ts'
import { type ReadSenders, sendersAtHome } from '../../db/delivery/senders/senders.sql.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { ServiceClock } from '../../db/postgres/service-clock.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import type { Capacities } from '../../db/queue/group-claims.sql.ts'
import { type Breakers, IN_FLIGHT_PER_SEND } from './breaker.ts'
import type { DeliveryChannel, DeliveryDeps, ManySenders, Outgoing, Senders } from './channel.ts'

export type Message<J extends DeliveryJob, A> = { job: FetchedJob<J>; outgoing: Outgoing<A> }

/**
 * A message that may be sent after `delay` milliseconds, counted from `at` by `performance.now()`. `reserved_at` is
 * the database's time of that decision.
 */
export type Released<J extends DeliveryJob, A> = Message<J, A> & {
  delay: number
  at: number
  reserved_at: Date | undefined
}

/** How many messages may be claimed, the excluded groups, and the limit per sender if there are many senders. */
export type ClaimLimits = { limit: number; except: readonly string[]; rooms?: Capacities }

type AdmissionResult<J extends DeliveryJob, A> = {
  released: Released<J, A>[]
  /** Messages that must wait for their sender, and for how many seconds. */
  held: { messages: Message<J, A>[]; seconds: number }[]
  /** How long nothing more can be claimed, in milliseconds. */
  wait: number
}

/**
 * A look at the database at the same time as a batch is read. `at` is when it started, by `performance.now()`.
 * `senders` is set if the channel has one sender, and that sender is `on_demand`.
 */
type Look = { at: number; is_home: boolean; senders: ReadSenders | undefined }

export type Admission<J extends DeliveryJob, A> = {
  admit(room: number): Promise<ClaimLimits>
  /** Checks if this is the original database, and reads the state of the channel's only sender. */
  look(): Promise<Look>
  /** Reserves the sends of the messages, for all their senders at once. */
  release(messages: readonly Message<J, A>[], seen: Look): Promise<AdmissionResult<J, A>>
  /** Ends a message's time in flight. @returns true if there may now be more to claim. */
  done(message: Message<J, A>): boolean
}

/** How far ahead sends are reserved by default, in seconds. */
const DEFAULT_HORIZON_S = 5
/** How long a message waits if its sender has enough in flight, in seconds. */
const FULL_WAIT_S = 1
/** The longest wait of a claimed message whose sender is paused, in seconds: with one sender, with many. */
const MAX_HOLD_S = { one: 5, many: 60 }
/** A sender is read again if the batch's own read took longer, in milliseconds. */
const LOOK_FRESH_MS = 50

export function createAdmission<J extends DeliveryJob, A>(
  { channel: { job }, senders, horizon = DEFAULT_HORIZON_S }: DeliveryChannel<J, A>,
  { database, stats }: Pick<DeliveryDeps, 'database' | 'stats'>,
  { breakers, clock }: { breakers: Breakers; clock: ServiceClock },
): Admission<J, A> {
  const [inFlight, full] = [createInFlightBySender(breakers), createFull()]

  async function admitOne(sender: Sender, room: number): Promise<ClaimLimits> {
    stats?.sendsThrough(job, sender.key)
    const state = await clock.setBy(stateOfSender(database, sender.key), ({ now }) => now)
    breakers.of(sender).see(state)
    if (state.wait_seconds > 0) return { limit: 0, except: [] }
    return { limit: state.probing ? Math.min(1, room) : room, except: [] }
  }

  async function admitMany({ prefix, paused }: ManySenders, room: number): Promise<ClaimLimits> {
    const { states } = await clock.setBy(failingSenders(database, prefix), ({ now }) => now)
    const of = inFlight.rooms()
    for (const [key, { wait_seconds, probing }] of states) {
      if (wait_seconds > 0) of.set(key, 0)
      else if (probing) of.set(key, Math.min(1, of.get(key) ?? 1))
    }
    for (const key of [...((await paused?.()) ?? []), ...full.keys()]) of.set(key, 0)
    return { limit: room, except: [], rooms: { of, others: IN_FLIGHT_PER_SEND.unknown } }
  }

  return {
    admit: async (room) =>
      'one' in senders ? admitOne(await senders.one(), room) : admitMany(senders, room),
    look: () => look(database, senders),
    async release(messages, seen) {
      const { taken, over } = inFlight.take(messages)
      const groups = [...Map.groupBy(taken, ({ outgoing }) => outgoing.sender.key).values()]
      const { at, known } = knownBy(seen)
      const made = await reserveSends(database, wantedOf(groups), horizon, known).catch((error: unknown) => {
        for (const each of taken) inFlight.leave(each)
        throw error
      })
      const result: AdmissionResult<J, A> = { released: [], held: [], wait: 0 }
      if (over.length > 0) result.held.push({ messages: over, seconds: FULL_WAIT_S })
      for (const [index, own] of groups.entries()) {
        const [first] = own
        const { delays = [], wait_seconds = 1, state } = made[index] ?? {}
        if (first && state) breakers.of(first.outgoing.sender).see(state)
        for (const [place, each] of own.slice(0, delays.length).entries())
          result.released.push({ ...each, delay: (delays[place] ?? 0) * 1_000, at, reserved_at: state?.now })
        const left = own.slice(delays.length)
        if (left.length === 0) continue
        for (const each of left) inFlight.leave(each)
        // A pause or another worker's probe may end early, so these messages check again soon.
        const seconds = Math.min(wait_seconds, 'one' in senders ? MAX_HOLD_S.one : MAX_HOLD_S.many)
        result.held.push({ messages: left, seconds })
        if ('one' in senders) result.wait = seconds * 1_000
        else if (first && !first.outgoing.sender.on_demand) full.add(first.outgoing.sender.key, seconds)
      }
      return result
    },
    done: (message) => inFlight.leave(message),
  }
}

async function look(database: Database, senders: Senders): Promise<Look> {
  const at = performance.now()
  const sender = 'one' in senders ? await senders.one() : null
  const { is_home, ...read } = await sendersAtHome(database, sender?.on_demand ? [sender.key] : [])
  return { at, is_home, senders: sender?.on_demand ? read : undefined }
}

/** Returns the rows of a recent look, and when they were read. Without one, they have to be read now. */
function knownBy({ at, senders }: Look): { at: number; known?: ReadSenders } {
  const now = performance.now()
  return senders !== undefined && now - at < LOOK_FRESH_MS ? { at, known: senders } : { at: now }
}

/** Remembers senders whose rate is used up for some seconds, whose messages would only be put back. */
function createFull() {
  const until = new Map<string, number>()
  return {
    add: (key: string, seconds: number): void => void until.set(key, performance.now() + seconds * 1_000),
    keys(): string[] {
      for (const [key, end] of until) if (end <= performance.now()) until.delete(key)
      return [...until.keys()]
    },
  }
}

const wantedOf = <J extends DeliveryJob, A>(groups: readonly (readonly Message<J, A>[])[]) =>
  groups.flatMap((own) => {
    const [first] = own
    return first ? [{ sender: first.outgoing.sender, costs: own.map(({ outgoing }) => outgoing.cost) }] : []
  })

/** How many senders with nothing in flight are remembered because they accept less than an unknown one. */
const MAX_REMEMBERED = 1_000

/** Counts the messages in flight of each sender that has its own limit. A hanging sender must not fill a worker. */
function createInFlightBySender(breakers: Breakers) {
  type Known = { sender: Sender; count: number }
  const known = new Map<string, Known>()
  /** The capacity at the last claim, and the senders that used all of it and may have more. */
  let rooms = new Map<string, number>()
  const missed = new Set<string>()
  const limitFor = (sender: Sender): number => {
    const breaker = breakers.of(sender)
    return breaker.ahead() * (breaker.isProven() ? (sender.at_once ?? 1) : 1)
  }
  const capacityFor = ({ sender, count }: Known): number => Math.max(0, limitFor(sender) - count)
  const evictIdle = (): void => {
    if (known.size <= MAX_REMEMBERED) return
    const [idle] = [...known].find(([, { count }]) => count === 0) ?? []
    if (idle !== undefined) known.delete(idle)
  }
  return {
    /** Returns the capacity of each sender where it differs from that of an unknown one. */
    rooms(): Map<string, number> {
      for (const [key, { sender, count }] of known)
        if (count === 0 && limitFor(sender) >= IN_FLIGHT_PER_SEND.unknown) known.delete(key)
      rooms = new Map([...known].map(([key, each]) => [key, capacityFor(each)]))
      for (const [key, room] of rooms) if (room === 0) missed.add(key)
      return new Map(rooms)
    },
    take<M extends { outgoing: { sender: Sender } }>(messages: readonly M[]): { taken: M[]; over: M[] } {
      const [taken, over]: [M[], M[]] = [[], []]
      for (const [key, own] of Map.groupBy(messages, ({ outgoing }) => outgoing.sender.key)) {
        const sender = own[0]?.outgoing.sender
        if (sender?.at_once === undefined) {
          taken.push(...own)
          continue
        }
        const one = known.get(key) ?? { sender, count: 0 }
        const some = own.slice(0, capacityFor(one))
        known.set(key, { sender, count: one.count + some.length })
        taken.push(...some)
        over.push(...own.slice(some.length))
        if (own.length >= (rooms.get(key) ?? IN_FLIGHT_PER_SEND.unknown)) missed.add(key)
      }
      return { taken, over }
    },
    /**
     * @returns true if there may be more to claim: everything there was capacity for was claimed, and half is done.
     */
    leave({ outgoing: { sender } }: { outgoing: { sender: Sender } }): boolean {
      const one = known.get(sender.key)
      if (!one) return false
      const count = one.count - 1
      known.delete(sender.key)
      if (count > 0 || limitFor(sender) < IN_FLIGHT_PER_SEND.unknown) known.set(sender.key, { sender, count })
      evictIdle()
      return count <= limitFor(sender) / 2 && missed.delete(sender.key)
    },
  }
}
