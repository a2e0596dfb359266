/**
 * Group commit: calls that arrive while a batch is being processed go into the next batch together. A call never waits
 * for later calls. Calls with the same key are processed in the order of their arrival. A key that is locked elsewhere
 * doesn't delay other keys. A failed batch that can be repeated is repeated key by key, then call by call. A call that
 * can't start in time is rejected and never starts.
 */

import { RequestError, Unavailable } from '../../db/errors.ts'
import { TEXTS } from './texts.ts'

/** The result of a call: a value, an error, or null if its key is locked elsewhere. */
export type CallEnd<O> = O | RequestError | null

export type Batcher<C, O> = (call: C) => Promise<O>

type BatchOptions<C, O> = {
  /** Processes a batch, all or nothing. If `alone`, its calls share a key, whose lock it waits for. */
  work(calls: readonly C[], alone: boolean): Promise<CallEnd<O>[]>
  keyOf(call: C): string
  /** The size of a call in bytes. A batch has at most MAX_BATCH_BYTES, unless it is a single call. */
  weightOf(call: C): number
  /** True if a batch that failed with this error stored nothing, so that its calls can be repeated. */
  isSafe(error: unknown): boolean
}

type Waiting<C, O> = { call: C; key: string; since: number } & PromiseWithResolvers<O>

const BATCHES_AT_ONCE = 2
/** Concurrent batches of single keys. Each can wait for a lock, and uses a connection while it waits. */
const SINGLE_KEYS_AT_ONCE = 3
const MAX_BATCH_CALLS = 100
const MAX_BATCH_BYTES = 4 * 1024 * 1024
const TURN_WAIT_MS = 10_000

/** Takes the next calls whose keys aren't in progress, and rejects those that have waited too long. */
function nextBatch<C, O>(
  pending: readonly Waiting<C, O>[],
  busy: ReadonlySet<string>,
  weightOf: (call: C) => number,
): { batch: Waiting<C, O>[]; left: Waiting<C, O>[] } {
  const batch: Waiting<C, O>[] = []
  const left: Waiting<C, O>[] = []
  const now = performance.now()
  /** The keys of calls that didn't fit. Their later calls also wait. */
  const deferred = new Set<string>()
  let weight = 0
  for (const each of pending) {
    const full =
      batch.length === MAX_BATCH_CALLS || (batch.length > 0 && weight + weightOf(each.call) > MAX_BATCH_BYTES)
    if (full) deferred.add(each.key)
    if (busy.has(each.key) || deferred.has(each.key)) left.push(each)
    else if (now - each.since > TURN_WAIT_MS) each.reject(late())
    else {
      batch.push(each)
      weight += weightOf(each.call)
    }
  }
  return { batch, left }
}

export function createBatcher<C, O>(gathering: BatchOptions<C, O>): Batcher<C, O> {
  type Batch = readonly Waiting<C, O>[]
  const { keyOf, weightOf } = gathering
  let pending: Waiting<C, O>[] = []
  const busy = new Set<string>()
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
    schedule()
  }

  async function runAlone(batch: Batch): Promise<void> {
    running.alone += 1
    const failed = await attempt(gathering, batch, true)
    for (const each of failed) await attempt(gathering, [each], true)
    running.alone -= 1
    for (const { key } of batch) busy.delete(key)
    schedule()
  }

  /** Deferred, so that calls that arrive together share a batch. */
  function schedule(): void {
    if (!scheduled) setImmediate(start)
    scheduled = true
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
    schedule()
    return waiting.promise
  }
}

const late = () => new Unavailable('busy', TEXTS.tooManyRequests, 1)

/** @returns the calls to process again */
async function attempt<C, O>(
  { work, isSafe }: BatchOptions<C, O>,
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

/** @returns false if the call's key is locked */
function answer<O>({ resolve, reject }: PromiseWithResolvers<O>, end: CallEnd<O>, alone: boolean): boolean {
  if (end instanceof RequestError) reject(end)
  else if (end !== null) resolve(end)
  else if (alone) reject(late())
  return end !== null || alone
}
