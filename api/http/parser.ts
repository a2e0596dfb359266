/**
 * A thread that parses and validates large bodies and forms, so that the process goes on serving everybody meanwhile.
 * Promises: it starts with the first large body and ends when idle or with `close`. It has one body at a time, whose
 * memory and time are bounded: past either the thread ends, that body alone is `unavailable`, and the next one gets a
 * new thread. What it answers is what `parseBody` or `readForm` would have. Its answers are read item by item, with
 * room for other requests between. Must not know any resource.
 */

import { setImmediate } from 'node:timers/promises'
import { deserialize } from 'node:v8'
import { type ErrorData, errorFrom, Unavailable } from '../../db/errors.ts'
import { createKeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import { byMemory } from '../../db/process/memory.ts'
import { isThreadDeath, openThread } from '../../db/process/thread.ts'
import { TEXTS } from './texts.ts'

/** What a body is: the JSON of a route, or a form of a Content-Type. */
export type Kind = { method: string; path: string } | { form: string }

export type Parser = {
  /**
   * @param bytes is moved to the thread, not copied: its caller has it no longer.
   * @param begun is called once the thread is its own.
   * @throws RequestError as `parseBody` and `readForm` do; unavailable when the thread ended over it, or had no time
   * for it.
   */
  parse(kind: Kind, bytes: Buffer, begun?: () => void): Promise<unknown>
  close(): Promise<void>
}

export type Question = Kind & { bytes: Uint8Array<ArrayBuffer> }

/** A value in V8's own form: what it costs to read it is paid when somebody does. */
type Packed = Uint8Array<ArrayBuffer>

/** What it answers: a whole body, a batch's items behind each other with their refusals, or the refusal of the call. */
export type Reply =
  | { body: Packed }
  | { items: ({ bytes: number } | { refused: ErrorData })[]; packed: Packed }
  | { refused: ErrorData }

/** Of the thread's heap, in MiB: more than the most strings and values of a body (input.ts) take. */
const THREAD_HEAP_MIB = 128
/** With little memory bodies are smaller. */
const LEAST_THREAD_HEAP_MIB = 64
const THREAD_YOUNG_HEAP_MIB = 16

/** In milliseconds: how long one body may take (the most values that are taken need about one second). */
const PARSE_TIMEOUT_MS = 15_000
/** How long a body waits for the thread, in milliseconds. */
const THREAD_WAIT_MS = 30_000

/** How long the items of a batch are read before others have their turn, in milliseconds. */
const SLICE_MS = 4

/** Too much that is large is under way. */
export const tooManyLarge = () => new Unavailable('large_bodies', TEXTS.tooManyLarge, 1)
const unread = () => new Unavailable('body_unread', TEXTS.unreadableBody, 1)

/** The body that an answer holds. @throws RequestError */
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

/** Short bytes may share their memory with others, which must not move. */
const movable = (bytes: Buffer): Uint8Array<ArrayBuffer> =>
  bytes.length === bytes.buffer.byteLength
    ? new Uint8Array(bytes.buffer as ArrayBuffer)
    : new Uint8Array(bytes)

/**
 * Makes a process's parser. @param entry what the thread runs. `timeLimit` is of one body, in milliseconds, `memory` is
 * the process's limit in bytes.
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
      // One at a time, so that what ends the thread is the body that it has, and the limit is that body's own.
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
