/** A semaphore per key within a process. Tasks wait in order. A task that gets no permit in time never starts. */

export type KeyedSemaphore = ReturnType<typeof createKeyedSemaphore>

/** The permits of a key that are in use, and the tasks that wait for one. */
type Permits = { held: number; waiting: Set<(given: boolean) => void> }

/** @param limit concurrent tasks per key. */
export function createKeyedSemaphore(limit: number) {
  const keys = new Map<string, Permits>()
  let closed = false

  const enter = async (permits: Permits, patience: number): Promise<boolean> => {
    if (closed) return false
    if (permits.held < limit) {
      permits.held += 1
      return true
    }
    // The permit is passed on, so `leave` doesn't change `held`.
    return new Promise((resolve) => {
      const end = (given: boolean): void => {
        clearTimeout(late)
        permits.waiting.delete(end)
        resolve(given)
      }
      const late = setTimeout(() => end(false), patience)
      permits.waiting.add(end)
    })
  }
  const leave = (key: string, permits: Permits): void => {
    const [next] = permits.waiting
    if (next) {
      next(true)
    } else {
      permits.held -= 1
      if (permits.held === 0) keys.delete(key)
    }
  }

  return {
    /**
     * Runs a task with a permit of its key.
     * @param patience how long to wait for a permit, in milliseconds. @returns null if it got none.
     */
    async run<T>(key: string, work: () => Promise<T>, patience: number): Promise<T | null> {
      const permits = keys.get(key) ?? { held: 0, waiting: new Set() }
      keys.set(key, permits)
      if (!(await enter(permits, patience))) return null
      try {
        return await work()
      } finally {
        leave(key, permits)
      }
    },
    /** Rejects all waiting and future tasks. */
    close(): void {
      closed = true
      for (const { waiting } of keys.values()) for (const end of waiting) end(false)
    },
  }
}
