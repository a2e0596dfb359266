/**
 * Parses and validates large bodies and forms in a thread, so that the process keeps serving other requests. It has one
 * body at a time, with limits for memory and time. Beyond a limit the thread ends, only that body is `unavailable`, and
 * the next one gets a new thread. The results are those of `parseBody` and `readForm`.
 */

import { setImmediate } from 'node:timers/promises'
import { deserialize } from 'node:v8'
import { type ErrorData, errorFrom, Unavailable } from '../../db/errors.ts'
import { createKeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import { byMemory } from '../../db/process/memory.ts'
import { isThreadDeath, openThread } from '../../db/process/thread.ts'
import { TEXTS } from './texts.ts'

export type Kind = { method: string; path: string } | { form: string }

export type Parser = {
  /**
   * @param bytes are moved to the thread. The caller can't use them afterwards.
   * @param begun called when the thread is free for this body.
   * @throws RequestError as `parseBody` and `readForm` do, unavailable if the thread ended or wasn't free in time
   */
  parse(kind: Kind, bytes: Buffer, begun?: () => void): Promise<unknown>
  close(): Promise<void>
}

export type Question = Kind & { bytes: Uint8Array<ArrayBuffer> }

type SerializedBytes = Uint8Array<ArrayBuffer>

/** `packed` contains the items of a batch one after another. */
export type Reply =
  | { body: SerializedBytes }
  | { items: ({ bytes: number } | { refused: ErrorData })[]; packed: SerializedBytes }
  | { refused: ErrorData }

/** The thread's heap: more than a body with the most strings and values (input.ts) needs. */
const THREAD_HEAP_MIB = 128
const LEAST_THREAD_HEAP_MIB = 64
const THREAD_YOUNG_HEAP_MIB = 16

/** The maximum number of values needs about a second. */
const PARSE_TIMEOUT_MS = 15_000
const THREAD_WAIT_MS = 30_000

/** How long a batch is deserialized before other requests get their turn, in milliseconds. */
const SLICE_MS = 4

export const tooManyLarge = () => new Unavailable('large_bodies', TEXTS.tooManyLarge, 1)
const unread = () => new Unavailable('body_unread', TEXTS.unreadableBody, 1)

async function unpacked(reply: Reply): Promise<unknown> {
  if ('refused' in reply) throw errorFrom(reply.refused)
  if ('body' in reply) return deserialize(reply.body)
  const items: unknown[] = []
  let since = performance.now()
  let at = 0
  for (const each of reply.items) {
    if ('refused' in each) items.push(errorFrom(each.refused))
    else {
      items.push(deserialize(reply.packed.subarray(at, at + each.bytes)))
      at += each.bytes
    }
    if (performance.now() - since < SLICE_MS) continue
    await setImmediate()
    since = performance.now()
  }
  return items
}

/** Copies bytes that share their memory with others, because a transfer moves all of it. */
const movable = (bytes: Buffer): Uint8Array<ArrayBuffer> =>
  bytes.length === bytes.buffer.byteLength
    ? new Uint8Array(bytes.buffer as ArrayBuffer)
    : new Uint8Array(bytes)

/**
 * @param entry the module that the thread runs
 * @param options `timeLimit` for one body in milliseconds, `memory` limit of the process in bytes
 */
export function createParser(
  entry: URL,
  { timeLimit = PARSE_TIMEOUT_MS, memory = Number.POSITIVE_INFINITY } = {},
): Parser {
  const semaphore = createKeyedSemaphore(1)
  let thread: ReturnType<typeof openThread<Question, Reply>> | null = null
  const ask = async (question: Question): Promise<Reply> => {
    thread ??= openThread<Question, Reply>(entry, {
      maxOldGenerationSizeMb: byMemory(memory, LEAST_THREAD_HEAP_MIB, THREAD_HEAP_MIB),
      maxYoungGenerationSizeMb: THREAD_YOUNG_HEAP_MIB,
    })
    const pool = await thread
    const options = { transferList: [question.bytes.buffer], signal: AbortSignal.timeout(timeLimit) }
    return pool.run(question, options).catch((error: unknown) => {
      throw isThreadDeath(error) ? unread() : error
    })
  }
  return {
    async parse(kind, bytes, begun) {
      // One at a time, so that only the body in the thread can end it, and has the time limit to itself.
      const work = (): Promise<Reply> => {
        begun?.()
        return ask({ ...kind, bytes: movable(bytes) })
      }
      const reply = await semaphore.run('thread', work, THREAD_WAIT_MS)
      if (reply === null) throw tooManyLarge()
      return unpacked(reply)
    },
    async close() {
      semaphore.close()
      await (await thread)?.destroy()
    },
  }
}
