/**
 * Group commit: calls that arrive while work is under way go into the next batch together.
 * Promises: a call waits only for work under way, never for more calls to come. Each call keeps its own result, in
 * order of arrival within its key. A key that somebody else holds never holds up the others. When a batch fails, each
 * of its calls is tried alone. A call that could not begin in time never begins. Must not know what the calls are
 * about.
 */

import { RequestError, Unavailable } from '../../db/errors.ts'
import { TEXTS } from './texts.ts'

/** How a call ended: its result, its refusal, or null: its key is held by somebody else. */
export type CallEnd<O> = O | RequestError | null

export type Batcher<C, O> = (call: C) => Promise<O>

type Batching<C, O> = {
  /** Does a batch of calls, all or nothing. `alone`: all of one key, and null is no answer: wait for it. */
  work(calls: readonly C[], alone: boolean): Promise<CallEnd<O>[]>
  /** Whose calls go one batch after another. */
  keyOf(call: C): string
  /** What a call weighs, in bytes; a batch ends where it would pass MAX_BATCH_BYTES. */
  weightOf(call: C): number
  /** Whether a batch that failed so has surely left nothing behind, and its calls may be tried one by one. */
  isSafe(error: unknown): boolean
}

type Waiting<C, O> = { call: C; key: string; since: number } & PromiseWithResolvers<O>

/** Batches under way at once, those of single keys apart. */
const BATCHES_AT_ONCE = 2
/** Keys that are gone through alone at once: they may wait for locks, each with a connection. */
const SINGLE_KEYS_AT_ONCE = 3
const MAX_BATCH_CALLS = 100
const MAX_BATCH_BYTES = 4 * 1024 * 1024
/** How long a call waits for its turn, in milliseconds. */
const TURN_WAIT_MS = 10_000

/** The next calls whose key is not under way, and those that are left; what has waited for too long is refused. */
function nextBatch<C, O>(
  pending: readonly Waiting<C, O>[],
  busy: ReadonlySet<string>,
  weightOf: (call: C) => number,
): { batch: Waiting<C, O>[]; left: Waiting<C, O>[] } {
  const batch: Waiting<C, O>[] = []
  const left: Waiting<C, O>[] = []
  const now = performance.now()
  let weight = 0
  for (const each of pending) {
    const full =
      batch.length === MAX_BATCH_CALLS || (batch.length > 0 && weight + weightOf(each.call) > MAX_BATCH_BYTES)
    if (busy.has(each.key) || full) left.push(each)
    else if (now - each.since > TURN_WAIT_MS) each.reject(late())
    else {
      batch.push(each)
      weight += weightOf(each.call)
    }
  }
  return { batch, left }
}

export function createBatcher<C, O>(gathering: Batching<C, O>): Batcher<C, O> {
  type Batch = readonly Waiting<C, O>[]
  const { keyOf, weightOf } = gathering
  let pending: Waiting<C, O>[] = []
  const busy = new Set<string>()
  /** Batches of one key each, for calls that can only go alone. */
  const apart: Batch[] = []
  const running = { batches: 0, alone: 0 }
  let scheduled = false

  async function runBatch(batch: Batch): Promise<void> {
    running.batches += 1
    const left = await attempt(gathering, batch, false)
    running.batches -= 1
    const leftKeys = new Set(left.map(({ key }) => key))
    for (const { key } of batch) if (!leftKeys.has(key)) busy.delete(key)
    apart.push(...Map.groupBy(left, ({ key }) => key).values())
    start()
  }

  async function runAlone(batch: Batch): Promise<void> {
    running.alone += 1
    const failed = await attempt(gathering, batch, true)
    for (const each of failed) await attempt(gathering, [each], true)
    running.alone -= 1
    for (const { key } of batch) busy.delete(key)
    start()
  }

  function start(): void {
    scheduled = false
    while (running.alone < SINGLE_KEYS_AT_ONCE) {
      const batch = apart.shift()
      if (!batch) break
      void runAlone(batch)
    }
    while (running.batches < BATCHES_AT_ONCE) {
      const { batch, left } = nextBatch(pending, busy, weightOf)
      pending = left
      if (batch.length === 0) break
      for (const { key } of batch) busy.add(key)
      void runBatch(batch)
    }
  }

  return (call) => {
    const waiting = { call, key: keyOf(call), since: performance.now(), ...Promise.withResolvers<O>() }
    pending.push(waiting)
    // Later in this turn of the event loop, so that calls that arrive together share a batch.
    if (!scheduled) setImmediate(start)
    scheduled = true
    return waiting.promise
  }
}

const late = () => new Unavailable('busy', TEXTS.tooManyRequests, 1)

/** Ends the calls that can be ended. @returns those that have to be done alone. */
async function attempt<C, O>(
  { work, isSafe }: Batching<C, O>,
  batch: readonly Waiting<C, O>[],
  alone: boolean,
): Promise<readonly Waiting<C, O>[]> {
  try {
    const ends = await work(
      batch.map(({ call }) => call),
      alone,
    )
    return batch.filter((each, index) => !answer(each, ends[index] ?? null, alone))
  } catch (error) {
    if (batch.length > 1 && isSafe(error)) return batch
    for (const each of batch) each.reject(error)
    return []
  }
}

/** @returns whether the call is over. */
function answer<O>({ resolve, reject }: PromiseWithResolvers<O>, end: CallEnd<O>, alone: boolean): boolean {
  if (end instanceof RequestError) reject(end)
  else if (end !== null) resolve(end)
  else if (alone) reject(late())
  return end !== null || alone
}
