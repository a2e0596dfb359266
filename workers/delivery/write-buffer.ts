/**
 * A write buffer: collects the results of many sends, so that one transaction records them all.
 * Promises: everything added is written soon, in order, by one writer at a time. Nothing added is lost while the
 * process lives, and senders that reserve room before they begin bound what a killed one loses. Must not know what it
 * buffers.
 */

export type WriteBuffer<T> = {
  add(item: T): void
  /** Takes room for one more, once there is some. @returns gives it back, when that one is added or never will be. */
  reserve(): Promise<() => void>
  /** Resolves when everything that was added so far is written. */
  flush(): Promise<void>
}

/** Milliseconds: what an item waits for company at most. When they come faster, the room decides (below). */
const LINGER_MS = 20
const MAX_ITEMS = 200

/**
 * @param write must not throw.
 * @param room fewer items than this may be unwritten or under way. Writing begins at once with half of what is left of
 *   it by those under way.
 */
export function createWriteBuffer<T>(
  write: (items: readonly T[]) => Promise<void>,
  { room }: { room: number },
): WriteBuffer<T> {
  let pending: T[] = []
  let unwritten = 0
  let reserved = 0
  /** When the oldest of those pending was added. */
  let since = 0
  let changed = Promise.withResolvers<void>()
  let writing: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null

  const wakeAll = (): void => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  const run = async (): Promise<void> => {
    const items = pending.slice(0, MAX_ITEMS)
    pending = pending.slice(MAX_ITEMS)
    await write(items)
    unwritten -= items.length
    wakeAll()
  }
  const start = (): Promise<void> => {
    if (timer !== null) clearTimeout(timer)
    timer = null
    writing ??= run().finally(() => {
      writing = null
      if (pending.length > 0) plan()
    })
    return writing
  }
  const plan = (): void => {
    if (writing !== null) return
    const left = LINGER_MS - (performance.now() - since)
    if (pending.length * 2 >= room - reserved || left <= 0) void start()
    else timer ??= setTimeout(start, left)
  }

  return {
    add(item) {
      if (pending.length === 0) since = performance.now()
      pending.push(item)
      unwritten += 1
      plan()
    },
    async reserve() {
      while (unwritten + reserved + 1 >= room) await changed.promise
      reserved += 1
      return () => {
        reserved -= 1
        wakeAll()
      }
    },
    async flush() {
      while (pending.length > 0 || writing !== null) await start()
    },
  }
}
