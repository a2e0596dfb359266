/**
 * A keyed semaphore within a process: for each key a limited number of tasks run at once, the others wait, first come,
 * first served.
 * Promises: work that gets no permit within its patience, or after the semaphore is closed, never begins.
 */

export type KeyedSemaphore = {
  /**
   * Does work under a permit of its key.
   * @param patience milliseconds to wait for one.
   * @returns null when none came free in time.
   */
  run<T>(key: string, work: () => Promise<T>, patience: number): Promise<T | null>
  /** From now on nothing begins any more. */
  close(): void
}

/** The permits of one key: how many are held, and what waits. */
type Permits = { held: number; waiting: Set<(given: boolean) => void> }

/** @param limit how many for each key at once. */
export function createKeyedSemaphore(limit: number): KeyedSemaphore {
  const keys = new Map<string, Permits>()
  let closed = false

  const enter = async (permits: Permits, patience: number): Promise<boolean> => {
    if (closed) return false
    if (permits.held < limit) {
      permits.held += 1
      return true
    }
    // What leaves counts the one that it lets in.
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
    async run(key, work, patience) {
      const permits = keys.get(key) ?? { held: 0, waiting: new Set() }
      keys.set(key, permits)
      if (!(await enter(permits, patience))) return null
      try {
        return await work()
      } finally {
        leave(key, permits)
      }
    },
    close() {
      closed = true
      for (const { waiting } of keys.values()) for (const end of waiting) end(false)
    },
  }
}
