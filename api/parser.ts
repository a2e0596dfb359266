/**
 * A thread that parses and validates large bodies, so that the process goes on serving everybody meanwhile.
 * Promises: it starts with the first large body, ends with `close`, and its memory is bounded: a body that needs more
 * is `unavailable`, and the next one gets a new thread. What it answers is what `parseBody` would have. Its answers are
 * taken over item by item, with room for others between.
 */
import { setImmediate } from 'node:timers/promises'
import { deserialize } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { type Code, Refusal } from '../db/errors.ts'

export type Parser = {
  /** @throws Refusal as `parseBody` does; unavailable when the thread ended over it. */
  parse(route: { method: string; path: string }, bytes: Buffer): Promise<unknown>
  close(): Promise<void>
}

/** A refusal on its way between threads: a class does not survive it. */
type Refused = { code: Code; message: string }

/** What the thread is asked. */
export type Question = { id: number; method: string; path: string; bytes: Uint8Array<ArrayBuffer> }

/** A value in V8's own form: what it costs to read it is paid when somebody does. */
type Packed = Uint8Array<ArrayBuffer>

/** What it answers: a whole body, the items of a batch with their refusals, or the refusal of the call. */
export type Reply =
  | { id: number; body: Packed }
  | { id: number; items: ({ item: Packed } | { refused: Refused })[] }
  | { id: number; refused: Refused }

/** Of the thread's heap, in MiB: 10 MiB of the smallest values take about a fifth of it. */
const HEAP = 512

const refusalOf = ({ code, message }: Refused): Refusal => new Refusal(code, message)

/** How long the items of a batch are taken over before others have their turn, in milliseconds. */
const SLICE = 4

/** The body that an answer holds. @throws Refusal */
async function unpacked(reply: Reply): Promise<unknown> {
  if ('refused' in reply) throw refusalOf(reply.refused)
  if ('body' in reply) return deserialize(reply.body)
  const items: unknown[] = []
  let since = performance.now()
  for (const each of reply.items) {
    items.push('item' in each ? deserialize(each.item) : refusalOf(each.refused))
    if (performance.now() - since < SLICE) continue
    await setImmediate()
    since = performance.now()
  }
  return items
}

type Waiting = { resolve: (reply: Reply) => void; reject: (error: Error) => void }

/** One thread, and who waits for it. `gone` is told once it has ended. */
function startThread(gone: () => void) {
  const waiting = new Map<number, Waiting>()
  const resourceLimits = { maxOldGenerationSizeMb: HEAP }
  const worker = new Worker(new URL('./parser-thread.ts', import.meta.url), { resourceLimits, execArgv: [] })
  worker.unref()
  worker.on('message', (reply: Reply) => {
    const asked = waiting.get(reply.id)
    waiting.delete(reply.id)
    asked?.resolve(reply)
  })
  const end = (): void => {
    gone()
    for (const { reject } of waiting.values())
      reject(new Refusal('unavailable', 'the body could not be read', 1))
    waiting.clear()
  }
  // An error ends the thread too.
  worker.on('error', end)
  worker.on('exit', end)
  return { worker, waiting }
}

/** Makes a process's parser. */
export function createParser(): Parser {
  let thread: ReturnType<typeof startThread> | null = null
  let asked = 0
  return {
    async parse({ method, path }, bytes) {
      thread ??= startThread(() => {
        thread = null
      })
      const { worker, waiting } = thread
      const id = asked++
      const own = new Uint8Array(bytes)
      const reply = await new Promise<Reply>((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        worker.postMessage({ id, method, path, bytes: own } satisfies Question, [own.buffer])
      })
      return unpacked(reply)
    },
    async close() {
      await thread?.worker.terminate()
    },
  }
}
