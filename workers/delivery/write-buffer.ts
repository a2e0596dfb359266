/**
 * Collects the results of many sends, so that one transaction records them all. Every item is written soon and in
 * order, by one writer at a time. An item can only be lost if the process is killed. Reserving capacity before each
 * send limits that loss.
 */

/** The longest wait of an item for others, in milliseconds. If they come faster, capacity decides (below). */
const LINGER_MS = 20
const MAX_ITEMS = 200

/**
 * @param write must not throw.
 * @param room is the limit of unwritten and reserved items. Writing starts at once when pending items fill half of
 * the capacity that isn't reserved.
 */
export function createWriteBuffer<T>(
  write: (items: readonly T[]) => Promise<void>,
  { room, lingerMs = LINGER_MS }: { room: number; lingerMs?: number },
) {
  const pending: T[] = []
  let unwritten = 0
  let reserved = 0
  let since = 0
  let changed = Promise.withResolvers<void>()
  let writing: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null

  const wakeAll = (): void => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  const run = async (): Promise<void> => {
    const items = pending.splice(0, MAX_ITEMS)
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
    const left = lingerMs - (performance.now() - since)
    if (pending.length * 2 >= room - reserved || left <= 0) void start()
    else timer ??= setTimeout(start, left)
  }

  return {
    add(item: T): void {
      if (pending.length === 0) since = performance.now()
      pending.push(item)
      unwritten += 1
      plan()
    },
    /** Reserves capacity for one item. @returns a function that releases it when the item is added or never will be. */
    async reserve(): Promise<() => void> {
      while (unwritten + reserved + 1 >= room) await changed.promise
      reserved += 1
      return () => {
        reserved -= 1
        wakeAll()
      }
    },
    /** Resolves when everything added so far is written. */
    async flush(): Promise<void> {
      while (pending.length > 0 || writing !== null) await start()
    },
  }
}

export type WriteBuffer<T> = ReturnType<typeof createWriteBuffer<T>>
