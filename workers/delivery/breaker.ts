/**
 * What this process sees of senders between two looks at their rows: what each took last, what it refused in a row.
 * Promises: when trouble shows, sends through that sender that were released but have not begun are stopped at once.
 * Local to this process: what other workers must know is in the sender's row (db/delivery/senders/circuit-breaker.ts).
 */
import { pauseAfter, type SenderSignal } from '../../db/delivery/senders/circuit-breaker.ts'
import type { Deferral } from '../../db/delivery/senders/deferrals.ts'
import type { Sender, SenderState } from '../../db/delivery/senders/rate-limit.ts'
import type { AttemptOutcome } from './retry-policy.ts'

/** One send: of which message, when it began, and how long it took in seconds. */
type Send = { message: string; began_at: Date; seconds: number }

type Breaker = {
  /** Takes note of how its row stands. */
  see(state: SenderState): void
  /** Takes note that a send begins. @returns to be called when it has ended. */
  began(): () => void
  /** Takes note of one send and of its duration. @returns what it says about the sender; null when nothing. */
  note(outcomes: readonly AttemptOutcome[], send: Send): SenderSignal | null
  /** Takes note of what has become of the sender's row. */
  changed(kind: 'slowed' | 'paused' | 'recovered'): void
  /** Whether what was released at that moment, by `performance.now()`, shall not begin any more. */
  isHalted(released_at: number): boolean
  /** Whether only one message at a time is sent to find out, or the last ones were deferred: what it takes is news. */
  isWatched(): boolean
  /** When the latest send was begun that was taken, as far as is known. */
  acceptedAt(): Date | null
  /** Whether its last send was taken in good time, and none that is under way is late. */
  isProven(): boolean
  /** How many messages may be in flight for each that is being sent: what it takes in a second, at its last pace. */
  ahead(): number
  /** How many seconds a message waits that has met this. */
  waitAfter(signal: SenderSignal | null): number
}

export type Breakers = { of(sender: Pick<Sender, 'key'>): Breaker }

/** This many refusals by policy in a row, with nothing taken between, mean that our own set-up is at fault. */
const POLICY_STRIKES = 3
/** A send that takes longer is slow, in seconds. */
export const SLOW_SEND_S = 2
/**
 * In flight for each message that is being sent: at least, at most, of a sender of which nothing is known yet, and of
 * one that is slow, which would keep others waiting for as long.
 */
export const IN_FLIGHT_PER_SEND = { least: 2, most: 16, unknown: 8, slow: 1 }
/** A pause may be lifted early, so a message looks again after this at the latest. In seconds. */
const MAX_WAIT_S = 31
/** Senders that are remembered; of a forgotten one, little is lost but that it is proven. */
const MAX_REMEMBERED = 10_000

export function createBreakers(): Breakers {
  const known = new Map<string, Breaker>()
  return {
    of({ key }) {
      const breaker = known.get(key) ?? createBreaker()
      known.delete(key)
      known.set(key, breaker)
      const [oldest] = known.keys()
      if (known.size > MAX_REMEMBERED && oldest !== undefined) known.delete(oldest)
      return breaker
    },
  }
}

const latest = (one: Date | null, other: Date | null): Date | null =>
  one !== null && (other === null || one > other) ? one : other

/** `strikes`: refusals by policy in a row, with this. `isNew`: nothing of the sender's was taken yet. */
type Suspicion = { strikes: number; isNew: boolean }

/** A deferral that may be about the sender; null without one. */
function deferralOf(outcomes: readonly AttemptOutcome[], message: string): Deferral | null {
  const found = outcomes.find(({ kind, key }) => kind === 'deferred' && key !== undefined)
  if (found?.key === undefined) return null
  const { key, detail: words } = found
  const domains = outcomes.flatMap((one) => (one.key === key && one.domain ? [one.domain] : []))
  return { key, words, message, domains: [...new Set(domains)] }
}

/** The first trouble of the sender's own among outcomes. */
function troubleOf(
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

/** Whether a message that was not taken was refused or put off, for its own sake as far as is known. */
const isOfItself = (outcomes: readonly AttemptOutcome[]): boolean =>
  outcomes.every(({ kind }) => ANSWERED.has(kind))

/** Remembers that messages were deferred, so that the first one that is accepted afterwards is news. */
function createDeferralWatch() {
  let deferred = false
  let isNews = false
  return {
    accepted() {
      isNews = deferred
      deferred = false
    },
    deferred(outcomes: readonly AttemptOutcome[], message: string): Deferral | null {
      const found = deferralOf(outcomes, message)
      deferred ||= found !== null
      return found
    },
    isNews: () => isNews,
  }
}

function isOldestLate([oldest]: ReadonlySet<{ since: number }>): boolean {
  return oldest !== undefined && performance.now() - oldest.since > SLOW_SEND_S * 1_000
}

export function createBreaker(): Breaker {
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
    see(seen) {
      state = seen
    },
    began() {
      const send = { since: performance.now() }
      underWay.add(send)
      return () => underWay.delete(send)
    },
    note(outcomes, { message, began_at, seconds }) {
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
      const trouble = troubleOf(outcomes, began_at, { strikes, isNew })
      if (trouble !== null) haltedAt = performance.now()
      if (trouble === null && state?.probing && isOfItself(outcomes)) return { kind: 'answered', began_at }
      const deferral = trouble === null ? row.deferred(outcomes, message) : null
      return deferral === null ? trouble : { kind: 'deferred', deferral, began_at }
    },
    changed(kind) {
      if (kind === 'paused') troubles += 1
      if (kind === 'recovered') troubles = 0
    },
    isHalted: (released_at) => released_at <= haltedAt,
    isWatched: () => row.isNews() || (state?.probing ?? false) || (state?.deferring ?? false),
    acceptedAt: () => latest(acceptedAt, state?.accepted_at ?? null),
    isProven: () => proven && !isLate(),
    ahead() {
      if (isLate() || (lasted !== null && lasted > SLOW_SEND_S)) return IN_FLIGHT_PER_SEND.slow
      if (lasted === null) return IN_FLIGHT_PER_SEND.unknown
      return Math.max(IN_FLIGHT_PER_SEND.least, Math.min(IN_FLIGHT_PER_SEND.most, Math.floor(1 / lasted)))
    },
    waitAfter(signal) {
      if (signal === null || !('words' in signal) || signal.kind === 'slow') return 1
      // A little longer than the pause, so that another message is the next probe.
      const pause = pauseAfter(signal.kind, troubles + 1, signal.wait_seconds)
      return Math.min(MAX_WAIT_S, pause + 1)
    },
  }
}
