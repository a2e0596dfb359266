/**
 * Tracks senders in this process between two reads of their rows: their last responses and consecutive rejections. If
 * a sender fails, released sends that haven't started are stopped at once. Other workers learn of it from the
 * sender's row (db/delivery/senders/circuit-breaker.ts).
 */
import { pauseAfter, type SenderSignal } from '../../db/delivery/senders/circuit-breaker.ts'
import type { Deferral } from '../../db/delivery/senders/deferrals.ts'
import type { Sender, SenderState } from '../../db/delivery/senders/rate-limit.ts'
import type { AttemptOutcome } from './retry-policy.ts'

/** One send, with its message, start time and duration in seconds. */
type Send = { message: string; began_at: Date; seconds: number }

/** The number of consecutive policy rejections without an acceptance that indicate a problem in our configuration. */
const POLICY_STRIKES = 3
/** A send that lasts longer than this is slow, in seconds. */
export const SLOW_SEND_S = 2
/** The number in flight per message that is being sent: minimum, maximum, for an unknown and for a slow sender. */
export const IN_FLIGHT_PER_SEND = { least: 2, most: 16, unknown: 8, slow: 1 }
/** A pause may be lifted early, so a message checks again after this long at the latest, in seconds. */
const MAX_WAIT_S = 31
const MAX_REMEMBERED = 10_000

export function createBreakers() {
  const known = new Map<string, Breaker>()
  return {
    of({ key }: Pick<Sender, 'key'>): Breaker {
      const breaker = known.get(key) ?? createBreaker()
      known.delete(key)
      known.set(key, breaker)
      const [oldest] = known.keys()
      if (known.size > MAX_REMEMBERED && oldest !== undefined) known.delete(oldest)
      return breaker
    },
  }
}

export type Breakers = ReturnType<typeof createBreakers>

const latest = (one: Date | null, other: Date | null): Date | null =>
  one !== null && (other === null || one > other) ? one : other

/** `strikes` counts consecutive policy rejections. `isNew` is true until something of the sender's is accepted. */
type Suspicion = { strikes: number; isNew: boolean }

function findDeferral(outcomes: readonly AttemptOutcome[], message: string): Deferral | null {
  const found = outcomes.find(({ kind, key }) => kind === 'deferred' && key !== undefined)
  if (found?.key === undefined) return null
  const { key, detail: words } = found
  const domains = outcomes.flatMap((one) => (one.key === key && one.domain ? [one.domain] : []))
  return { key, words, message, domains: [...new Set(domains)] }
}

function findTrouble(
  outcomes: readonly AttemptOutcome[],
  began_at: Date,
  { strikes, isNew }: Suspicion,
): SenderSignal | null {
  for (const { kind, detail: words, trouble, wait_seconds } of outcomes) {
    if (kind === 'sender') return { kind: trouble ?? 'setup', words, wait_seconds, began_at }
    const isOurs = strikes >= POLICY_STRIKES || (isNew && trouble === 'setup')
    if (kind === 'policy' && isOurs) return { kind: 'setup', words, began_at }
  }
  return null
}

const ANSWERED: ReadonlySet<AttemptOutcome['kind']> = new Set(['refused', 'deferred', 'policy'])

/** True if a message was rejected or deferred for its own reasons, as far as is known. */
const isOfItself = (outcomes: readonly AttemptOutcome[]): boolean =>
  outcomes.every(({ kind }) => ANSWERED.has(kind))

/** Remembers that messages were deferred, so that the first accepted one afterwards counts as a recovery. */
function createDeferralWatch() {
  let deferred = false
  let isNews = false
  return {
    accepted() {
      isNews = deferred
      deferred = false
    },
    deferred(outcomes: readonly AttemptOutcome[], message: string): Deferral | null {
      const found = findDeferral(outcomes, message)
      deferred ||= found !== null
      return found
    },
    isNews: () => isNews,
  }
}

function isOldestLate([oldest]: ReadonlySet<{ since: number }>): boolean {
  return oldest !== undefined && performance.now() - oldest.since > SLOW_SEND_S * 1_000
}

/** Returns how many messages may be in flight per send: as many as fit into a second at the last duration. */
function mostInFlight(lasted: number | null, isLate: boolean): number {
  if (isLate || (lasted !== null && lasted > SLOW_SEND_S)) return IN_FLIGHT_PER_SEND.slow
  if (lasted === null) return IN_FLIGHT_PER_SEND.unknown
  return Math.max(IN_FLIGHT_PER_SEND.least, Math.min(IN_FLIGHT_PER_SEND.most, Math.floor(1 / lasted)))
}

/** Returns how many seconds a message waits after this signal. */
function waitAfter(signal: SenderSignal | null, troubles: number): number {
  if (signal === null || !('words' in signal) || signal.kind === 'slow') return 1
  // A little longer than the pause, so that another message is the next probe.
  const pause = pauseAfter(signal.kind, troubles + 1, signal.wait_seconds)
  return Math.min(MAX_WAIT_S, pause + 1)
}

export function createBreaker() {
  let state: SenderState | null = null
  let acceptedAt: Date | null = null
  let haltedAt = Number.NEGATIVE_INFINITY
  let strikes = 0
  const row = createDeferralWatch()
  let troubles = 0
  let proven = false
  let lasted: number | null = null
  const underWay = new Set<{ since: number }>()
  const isLate = (): boolean => isOldestLate(underWay)
  return {
    see(seen: SenderState): void {
      state = seen
    },
    /** Records that a send starts. @returns a function to call when it has ended. */
    began(): () => void {
      const send = { since: performance.now() }
      underWay.add(send)
      return () => underWay.delete(send)
    },
    /** Records a send and its duration. @returns the signal about the sender, or null. */
    note(outcomes: readonly AttemptOutcome[], { message, began_at, seconds }: Send): SenderSignal | null {
      const isTaken = outcomes.some(({ kind }) => kind === 'accepted')
      lasted = seconds
      proven = isTaken && seconds <= SLOW_SEND_S
      if (isTaken) {
        strikes = 0
        row.accepted()
        acceptedAt = latest(began_at, acceptedAt)
        const slow = outcomes.find(({ trouble }) => trouble === 'slow')
        return slow ? { kind: 'slow', words: slow.detail, began_at } : { kind: 'accepted', began_at }
      }
      if (outcomes.some(({ kind }) => kind === 'policy')) strikes += 1
      const isNew = acceptedAt === null && (state?.accepted_at ?? null) === null
      const trouble = findTrouble(outcomes, began_at, { strikes, isNew })
      if (trouble !== null) haltedAt = performance.now()
      if (trouble === null && state?.probing && isOfItself(outcomes)) return { kind: 'answered', began_at }
      const deferral = trouble === null ? row.deferred(outcomes, message) : null
      return deferral === null ? trouble : { kind: 'deferred', deferral, began_at }
    },
    changed(kind: 'slowed' | 'paused' | 'recovered'): void {
      if (kind === 'paused') troubles += 1
      if (kind === 'recovered') troubles = 0
    },
    /** True if messages released at that time, by `performance.now()`, must no longer start. */
    isHalted: (released_at: number): boolean => released_at <= haltedAt,
    /** True if a probe is sent, or the last messages were deferred, so that an acceptance is significant. */
    isWatched: (): boolean => row.isNews() || (state?.probing ?? false) || (state?.deferring ?? false),
    acceptedAt: (): Date | null => latest(acceptedAt, state?.accepted_at ?? null),
    /** True if its last send was accepted in time, and no current send is late. */
    isProven: (): boolean => proven && !isLate(),
    ahead: (): number => mostInFlight(lasted, isLate()),
    waitAfter: (signal: SenderSignal | null): number => waitAfter(signal, troubles),
  }
}

type Breaker = ReturnType<typeof createBreaker>
