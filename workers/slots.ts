/**
 * How many provider calls may run at once in this process (WORKER_CONCURRENCY), whatever batch they belong to.
 * Promises: first come, first served; a call that gets no slot within its patience never starts, nor does one that
 * was let go before its sender was halted, nor any once they are closed. Holds no job.
 */

export type Slots = {
  /** Runs `work` in a slot. @param patience milliseconds to wait for one. @returns null when none came free in time. */
  run<T>(work: () => Promise<T>, patience: number): Promise<T | null>
  /** What was let go through this sender before `now` and has not begun yet shall not: its pace has changed. */
  halt(sender: string, now: Date): void
  isHalted(sender: string, booked_at: Date): boolean
  /** From now on nothing begins any more: the process is about to end. */
  close(): void
}

/** Makes the slots of a process. */
export function createSlots(limit: number): Slots {
  const waiting = new Set<(given: boolean) => void>()
  const halts = new Map<string, Date>()
  let free = limit
  let closed = false

  const acquire = async (patience: number): Promise<boolean> => {
    if (closed) return false
    if (free > 0) {
      free -= 1
      return true
    }
    return await new Promise((resolve) => {
      const end = (given: boolean): void => {
        clearTimeout(late)
        waiting.delete(end)
        resolve(given)
      }
      const late = setTimeout(() => end(false), patience)
      waiting.add(end)
    })
  }
  const release = (): void => {
    const [next] = waiting
    if (next) next(true)
    else free += 1
  }

  return {
    async run(work, patience) {
      if (!(await acquire(patience))) return null
      try {
        return await work()
      } finally {
        release()
      }
    },
    halt: (sender, now) => void halts.set(sender, now),
    isHalted: (sender, booked_at) => (halts.get(sender) ?? booked_at) > booked_at,
    close() {
      closed = true
      for (const end of waiting) end(false)
    },
  }
}
