/**
 * Circuit breakers of senders, one each for all workers, stored in their rows: closed in normal operation, open while
 * a sender is paused, half-open while one send probes it. Outcomes of sends change the state. A send that started
 * before a failure or recovery was known changes nothing. Pauses grow with each failed probe up to 30 seconds, or as
 * long as the provider requests. A longer existing pause stays. The first accepted send that started after the
 * failure closes the circuit for every worker. Both changes are recorded once in the sender's timeline. Runs last in
 * the caller's transaction, because other sends wait for these rows. All times are the database's.
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
import { readFailingSenders, sendersByKeys } from './senders.sql.ts'

/** An unreachable sender is probed again soon, one with a configuration error less and less often. In seconds. */
const PAUSES = { connection: [1, 2, 4, 6], setup: [2, 4, 8, 16, 30] } as const

type RequestError = {
  words: string
  /** How long the provider will reject everything according to its response, in seconds. */
  wait_seconds?: number | undefined
  /** When the failed send started. */
  began_at: Date
}

/**
 * The finding of one send about its sender.
 * - accepted: a message was accepted.
 * - answered: a message was rejected or deferred for its own reasons. Only for probes.
 * - deferred: a message was deferred in a way that may be about the sender (deferrals.ts).
 * - slow: it sends too fast.
 * - setup: everything is rejected until someone fixes the configuration.
 * - connection: it can't be reached.
 */
export type SenderSignal =
  | { kind: 'accepted'; began_at: Date }
  | { kind: 'answered'; began_at: Date }
  | { kind: 'deferred'; deferral: Deferral; began_at: Date }
  | ({ kind: 'slow' } & RequestError)
  | ({ kind: 'setup' } & RequestError)
  | ({ kind: 'connection' } & RequestError)

type Trouble = keyof typeof PAUSES

const pauseStep = (kind: Trouble, troubles: number): number => {
  const steps = PAUSES[kind]
  return steps[Math.min(Math.max(troubles, 1), steps.length) - 1] ?? 1
}

/**
 * Returns how long a sender is paused after a number of failures in a row, in seconds: at least as long as it
 * requests. If it keeps requesting a second, it is still probed less and less often.
 */
export const pauseAfter = (kind: Trouble, troubles: number, named?: number): number =>
  named === undefined ? pauseStep(kind, troubles) : Math.max(named, pauseStep('setup', troubles))

/** A change of a sender, for logs and metrics. `news` is for its timeline. */
export type Change = {
  sender: string
  kind: 'slowed' | 'paused' | 'recovered'
  words: string
  /** For how long it is paused. */
  seconds: number
}

type Changed = { pace: Pace; changes: Omit<Change, 'sender'>[]; news: Omit<SenderEvent, 'sender'>[] }

const findNewest = <K extends SenderSignal['kind']>(signals: readonly SenderSignal[], kind: K) =>
  signals
    .filter((signal): signal is Extract<SenderSignal, { kind: K }> => signal.kind === kind)
    .sort((one, other) => other.began_at.getTime() - one.began_at.getTime())[0]

/** Applies signals to senders, each named once, in a few statements. */
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

/** Returns a sender's state after the newest signal of each kind. */
function afterSignals(pace: Pace, now: Date, signals: readonly SenderSignal[]): Changed {
  let state: Changed = { pace, changes: [], news: [] }
  // Before the other outcomes, whose pauses it must not end.
  const answered = findNewest(signals, 'answered')
  if (answered) state = endProbe(state, answered.began_at)
  state = afterRow(state, now, signals)
  const slow = findNewest(signals, 'slow')
  if (slow) state = slowDown({ ...state, pace: { ...state.pace, deferrals: null } }, now, slow)
  for (const kind of ['setup', 'connection'] as const) {
    const refusal = findNewest(signals, kind)
    if (refusal) state = trip(state, now, { ...refusal, kind })
  }
  const accepted = findNewest(signals, 'accepted')
  return accepted ? recover(state, now, accepted.began_at) : state
}

/** Returns the state after a sender's messages were deferred or accepted, in their order. */
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

/** Ends a sequence of deferrals. A sender that was slowed only because of it returns to its full rate. */
function endDeferrals(state: Changed, now: Date): Changed {
  const { pace } = state
  if (pace.deferrals === null) return state
  const ended = { ...pace, deferrals: null }
  return pace.deferrals.slowed
    ? recovered(state, { ...ended, slowed_at: null }, now)
    : { ...state, pace: ended }
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
  // A shorter one may be from this probe.
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
 * Ends a probe early, so that the next message can probe. Doesn't end a pause of the same length or a later probe.
 */
function endProbe(state: Changed, began_at: Date): Changed {
  const { pace } = state
  const reserved_at = (pace.paused_until?.getTime() ?? 0) - PROBE_SECONDS * 1_000
  const isOwn = reserved_at > (pace.troubled_at?.getTime() ?? 0) && began_at.getTime() >= reserved_at
  return isOwn ? { ...state, pace: { ...pace, paused_until: null } } : state
}

const AT_EASE = { troubles: 0, troubled_at: null, paused_until: null, pause_reason: null }
const RECOVERED = 'messages are accepted again'

/** Closes the circuit after a send that started since it was opened was accepted. */
function recover(state: Changed, now: Date, began_at: Date): Changed {
  const { pace } = state
  const { troubled_at } = pace
  if (troubled_at === null || began_at <= troubled_at) return state
  return recovered(state, { ...pace, ...AT_EASE, accepted_at: now }, now)
}

const recovered = ({ changes, news }: Changed, pace: Pace, now: Date): Changed => ({
  pace,
  changes: [...changes, { kind: 'recovered', words: RECOVERED, seconds: 0 }],
  news: [...news, { kind: 'recovered', occurred_at: now, detail: RECOVERED }],
})

/** Returns the state of the sender with this key. One query. */
export async function stateOfSender(tx: Tx, key: string): Promise<SenderState> {
  const { now, rows } = await sendersByKeys(tx, [key])
  const row = rows.get(key)
  return stateAt(row ? paceAt(row, row.rate, now) : UNTROUBLED, now)
}

/** Returns the state of senders with an open or half-open circuit, by a prefix of their keys. One query. */
export async function failingSenders(tx: Tx, prefix: string) {
  const { now, rows } = await readFailingSenders(tx, prefix)
  const states = [...rows].map(([key, row]): [string, SenderState] => [
    key,
    stateAt(paceAt(row, row.rate, now), now),
  ])
  return { now, states: new Map(states) }
}
