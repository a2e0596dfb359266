/**
 * A thread that parses and validates large bodies, so that the process goes on serving everybody meanwhile.
 * Promises: it starts with the first large body, ends with `close`, and its memory is bounded: a body that needs more
 * is `unavailable`, and the next one gets a new thread. What it answers is what `parseBody` would have.
 */
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

/** What it answers: a whole body, the items of a batch with their refusals, or the refusal of the call. */
export type Reply =
  | { id: number; body: unknown }
  | { id: number; items: ({ item: unknown } | { refused: Refused })[] }
  | { id: number; refused: Refused }

/** Of the thread's heap, in MiB: 10 MiB of the smallest values take about a fifth of it. */
const HEAP = 512

const refusalOf = ({ code, message }: Refused): Refusal => new Refusal(code, message)

type Waiting = { resolve: (body: unknown) => void; reject: (error: Error) => void }

/** One thread, and who waits for it. `gone` is told once it has ended. */
function startThread(gone: () => void) {
  const waiting = new Map<number, Waiting>()
  const resourceLimits = { maxOldGenerationSizeMb: HEAP }
  const worker = new Worker(new URL('./parser-thread.ts', import.meta.url), { resourceLimits, execArgv: [] })
  worker.unref()
  worker.on('message', (reply: Reply) => {
    const asked = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('refused' in reply) asked?.reject(refusalOf(reply.refused))
    else if ('body' in reply) asked?.resolve(reply.body)
    else asked?.resolve(reply.items.map((each) => ('item' in each ? each.item : refusalOf(each.refused))))
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
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        worker.postMessage({ id, method, path, bytes: own } satisfies Question, [own.buffer])
      })
    },
    async close() {
      await thread?.worker.terminate()
    },
  }
}
