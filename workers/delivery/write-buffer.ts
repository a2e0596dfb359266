/**
 * A write buffer: collects the results of many sends, so that one transaction records them all.
 * Promises: everything added is written soon, in order, by one writer at a time. Nothing added is lost while the
 * process lives, and senders that wait for room bound what a killed one loses. Must not know what it buffers.
 */

export type WriteBuffer<T> = {
  add(item: T): void
  /** Resolves when fewer than `room` items are unwritten. */
  room(): Promise<void>
  /** Resolves when everything that was added so far is written. */
  flush(): Promise<void>
}

/** Milliseconds: what a lone item waits for company. When they come faster, the room decides (below). */
const LINGER = 20
const MOST = 200

/**
 * @param write must not throw.
 * @param room how many items may be unwritten; with half as many, writing begins at once.
 */
export function createWriteBuffer<T>(
  write: (items: readonly T[]) => Promise<void>,
  { room }: { room: number },
): WriteBuffer<T> {
  let pending: T[] = []
  let unwritten = 0
  let written = Promise.withResolvers<void>()
  let writing: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null

  const run = async (): Promise<void> => {
    while (pending.length > 0) {
      const items = pending.slice(0, MOST)
      pending = pending.slice(MOST)
      await write(items)
      unwritten -= items.length
      written.resolve()
      written = Promise.withResolvers()
    }
  }
  const start = (): Promise<void> => {
    if (timer !== null) clearTimeout(timer)
    timer = null
    writing ??= run().finally(() => {
      writing = null
      // Something may have been added between the last look and the end of the writer.
      if (pending.length > 0) plan()
    })
    return writing
  }
  const plan = (): void => {
    if (writing !== null) return
    if (pending.length * 2 >= room) void start()
    else timer ??= setTimeout(start, LINGER)
  }

  return {
    add(item) {
      pending.push(item)
      unwritten += 1
      plan()
    },
    async room() {
      while (unwritten >= room) await written.promise
    },
    async flush() {
      while (pending.length > 0 || writing !== null) await start()
    },
  }
}
