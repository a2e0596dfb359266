/**
 * The circuit breakers of senders, one each for the whole fleet, in their rows: closed while all is well, open while a
 * sender is paused, half-open while one send at a time probes it. What sends have met moves them.
 * Promises: a send that began before the trouble, or its end, was known changes nothing. Pauses grow with each failed
 * probe, to half a minute at most unless the provider names a longer time; a longer one that stands stays. The
 * first send that began after the trouble and was taken ends it, at once for every worker. The sender's timeline
 * records both, once. Runs last in the caller's transaction, because other sends wait for these rows. All times are
 * the database's.
 */
import type { Tx } from '../../postgres/pool.ts'
import { afterDeferral, type Deferral, isAboutSender } from './deferrals.ts'
import { insertSenderEvents, type SenderEvent } from './events.sql.ts'
import {
  changePaces,
  type Pace,
  PROBE_SECONDS,
  paceAt,
  paused,
  type Sender,
  type SenderState,
  slowed,
  stateAt,
  UNTROUBLED,
} from './rate-limit.ts'
import { sendersByKeys, sendersInTrouble } from './senders.sql.ts'

/** A sender that cannot be reached is asked again soon, one whose set-up is refused less and less often. In seconds. */
const PAUSES = { connection: [1, 2, 4, 6], setup: [2, 4, 8, 16, 30] } as const

type RequestError = {
  /** The provider's words. */
  words: string
  /** How long the provider says that it will refuse everything, in seconds. */
  wait_seconds?: number | undefined
  /** When the send that met it began. */
  began_at: Date
}

/**
 * What one send says about its sender.
 * - accepted: a message was taken.
 * - answered: one was refused or put off for its own sake, which says nothing of the sender. Said of probes.
 * - deferred: one was deferred in a way that may be about the sender (deferrals.ts).
 * - slow: it goes too fast.
 * - setup: everything is refused until a person acts.
 * - connection: it cannot be reached.
 */
export type SenderSignal =
  | { kind: 'accepted'; began_at: Date }
  | { kind: 'answered'; began_at: Date }
  | { kind: 'deferred'; deferral: Deferral; began_at: Date }
  | ({ kind: 'slow' } & RequestError)
  | ({ kind: 'setup' } & RequestError)
  | ({ kind: 'connection' } & RequestError)

type Trouble = keyof typeof PAUSES

const stepOf = (kind: Trouble, troubles: number): number => {
  const steps = PAUSES[kind]
  return steps[Math.min(Math.max(troubles, 1), steps.length) - 1] ?? 1
}

/**
 * How long a sender is paused after a number of troubles in a row, in seconds: as long as it names, but who names a
 * second each time is asked less and less often all the same. Pure.
 */
export const pauseAfter = (kind: Trouble, troubles: number, named?: number): number =>
  named === undefined ? stepOf(kind, troubles) : Math.max(named, stepOf('setup', troubles))

/** What has changed for a sender, for those who watch: `news` is its timeline's. */
export type Change = {
  sender: string
  kind: 'slowed' | 'paused' | 'recovered'
  words: string
  /** For how long it is paused. */
  seconds: number
}

type Changed = { pace: Pace; changes: Omit<Change, 'sender'>[]; news: Omit<SenderEvent, 'sender'>[] }

const newestOf = <K extends SenderSignal['kind']>(signals: readonly SenderSignal[], kind: K) =>
  signals
    .filter((signal): signal is Extract<SenderSignal, { kind: K }> => signal.kind === kind)
    .sort((one, other) => other.began_at.getTime() - one.began_at.getTime())[0]

/** Applies to each sender, named once, the signals of its sends. A few statements for all together. */
export async function applySignals(
  tx: Tx,
  signalled: readonly { sender: Sender; signals: readonly SenderSignal[] }[],
): Promise<Change[]> {
  const changed = await changePaces<Changed & { sender: string }>(
    tx,
    signalled.map(({ sender, signals }) => ({
      sender,
      decide: (pace, now) => {
        const result = afterSignals(pace, now, signals)
        return { pace: result.pace, result: { ...result, sender: sender.key } }
      },
    })),
  )
  const events = changed.flatMap(({ sender, news }) => news.map((event) => ({ ...event, sender })))
  if (events.length > 0) await insertSenderEvents(tx, events)
  return changed.flatMap(({ sender, changes }) => changes.map((change) => ({ ...change, sender })))
}

/** A sender after the newest signal of each kind. Pure. */
function afterSignals(pace: Pace, now: Date, signals: readonly SenderSignal[]): Changed {
  let state: Changed = { pace, changes: [], news: [] }
  // Before what the others have met, whose pauses it must not end.
  const answered = newestOf(signals, 'answered')
  if (answered) state = endProbe(state, answered.began_at)
  state = afterRow(state, now, signals)
  const slow = newestOf(signals, 'slow')
  if (slow) state = slowDown({ ...state, pace: { ...state.pace, deferrals: null } }, now, slow)
  for (const kind of ['setup', 'connection'] as const) {
    const refusal = newestOf(signals, kind)
    if (refusal) state = trip(state, now, { ...refusal, kind })
  }
  const accepted = newestOf(signals, 'accepted')
  return accepted ? recover(state, now, accepted.began_at) : state
}

/** The messages of a sender that were deferred or accepted, in their order. */
function afterRow(before: Changed, now: Date, signals: readonly SenderSignal[]): Changed {
  let state = before
  for (const signal of signals) {
    if (signal.kind === 'accepted') state = endDeferrals(state, now)
    if (signal.kind !== 'deferred') continue
    const { deferral, began_at } = signal
    const deferrals = afterDeferral(state.pace.deferrals, deferral)
    state = { ...state, pace: { ...state.pace, deferrals } }
    if (!isAboutSender(deferrals)) continue
    const isOurs = deferrals.slowed || state.pace.slowed_at === null
    state = slowDown(state, now, { words: deferral.words, began_at })
    state = { ...state, pace: { ...state.pace, deferrals: { ...deferrals, slowed: isOurs } } }
  }
  return state
}

/** Ends a row of deferrals. What was slowed for it alone has its full pace again. */
function endDeferrals(state: Changed, now: Date): Changed {
  const { pace } = state
  if (pace.deferrals === null) return state
  const ended = { ...pace, deferrals: null }
  if (!pace.deferrals.slowed) return { ...state, pace: ended }
  return {
    pace: { ...ended, slowed_at: null },
    changes: [...state.changes, { kind: 'recovered', words: RECOVERED, seconds: 0 }],
    news: [...state.news, { kind: 'recovered', occurred_at: now, detail: RECOVERED }],
  }
}

function slowDown(state: Changed, now: Date, { words, wait_seconds, began_at }: RequestError): Changed {
  const { pace, isNews } =
    wait_seconds === undefined
      ? slowed(state.pace, now, began_at)
      : paused(state.pace, now, { seconds: wait_seconds, reason: words })
  const event = {
    kind: wait_seconds === undefined ? 'slowed' : 'paused',
    occurred_at: now,
    detail: words,
  } as const
  return {
    pace,
    changes: [...state.changes, { kind: 'slowed', words, seconds: wait_seconds ?? 0 }],
    news: isNews ? [...state.news, event] : state.news,
  }
}

function trip(
  state: Changed,
  now: Date,
  { kind, words, wait_seconds, began_at }: RequestError & { kind: Trouble },
): Changed {
  const { pace } = state
  const known = Math.max(pace.troubled_at?.getTime() ?? 0, pace.accepted_at?.getTime() ?? 0)
  if (began_at.getTime() <= known) return state
  const troubles = pace.troubles + 1
  const wait = pauseAfter(kind, troubles, wait_seconds)
  const troubled: Pace = { ...pace, troubles, troubled_at: now }
  const change = (seconds: number) => [...state.changes, { kind: 'paused' as const, words, seconds }]
  const { wait_seconds: left } = stateAt(pace, now)
  // A shorter one may be this very probe's.
  if (left > Math.max(wait, PROBE_SECONDS)) return { ...state, pace: troubled, changes: change(left) }
  const isKnown = pace.troubles > 0 && pace.pause_reason === words
  const event = { kind: 'paused' as const, occurred_at: now, detail: words }
  return {
    pace: { ...troubled, paused_until: new Date(now.getTime() + wait * 1_000), pause_reason: words },
    changes: change(wait),
    news: isKnown ? state.news : [...state.news, event],
  }
}

/**
 * Lets the next message find out, whose turn would come when the time of this probe is over. Only what this very probe
 * has reserved is ended: no pause, also not one that is as short, and no probe that came after it.
 */
function endProbe(state: Changed, began_at: Date): Changed {
  const { pace } = state
  const reserved_at = (pace.paused_until?.getTime() ?? 0) - PROBE_SECONDS * 1_000
  const isOwn = reserved_at > (pace.troubled_at?.getTime() ?? 0) && began_at.getTime() >= reserved_at
  return isOwn ? { ...state, pace: { ...pace, paused_until: null } } : state
}

const AT_EASE = { troubles: 0, troubled_at: null, paused_until: null, pause_reason: null }
const RECOVERED = 'messages are taken again'

/** Closes the circuit, after a send that began since it was opened was taken. */
function recover(state: Changed, now: Date, began_at: Date): Changed {
  const { pace } = state
  const { troubled_at } = pace
  if (troubled_at === null || began_at <= troubled_at) return state
  return {
    pace: { ...pace, ...AT_EASE, accepted_at: now },
    changes: [...state.changes, { kind: 'recovered', words: RECOVERED, seconds: 0 }],
    news: [...state.news, { kind: 'recovered', occurred_at: now, detail: RECOVERED }],
  }
}

/** How the sender of this key stands. One read. */
export async function stateOfSender(tx: Tx, key: string): Promise<SenderState> {
  const { now, rows } = await sendersByKeys(tx, [key])
  const row = rows.get(key)
  return stateAt(row ? paceAt(row, row.rate, now) : UNTROUBLED, now)
}

/** How senders stand whose circuit is open or half-open, of those whose keys begin so. One read. */
export async function troubledSenders(
  tx: Tx,
  prefix: string,
): Promise<{ now: Date; states: ReadonlyMap<string, SenderState> }> {
  const { now, rows } = await sendersInTrouble(tx, prefix)
  const states = [...rows].map(([key, row]): [string, SenderState] => [
    key,
    stateAt(paceAt(row, row.rate, now), now),
  ])
  return { now, states: new Map(states) }
}
