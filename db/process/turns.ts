/**
 * A semaphore within a process: so many of a kind run at once, the others wait, first come, first served.
 * Promises: work that gets no turn within its patience, or after the turns are closed, never begins.
 */

export type Turns = {
  /**
   * Does work of a kind in a turn of its own.
   * @param patience milliseconds to wait for one.
   * @returns null when none came free in time.
   */
  run<T>(kind: string, work: () => Promise<T>, patience: number): Promise<T | null>
  /** From now on nothing begins any more. */
  close(): void
}

/** One kind: how many are running, and who waits. */
type Line = { busy: number; waiting: Set<(given: boolean) => void> }

/** @param limit how many of each kind at once. */
export function createTurns(limit: number): Turns {
  const lines = new Map<string, Line>()
  let closed = false

  const enter = async (line: Line, patience: number): Promise<boolean> => {
    if (closed) return false
    if (line.busy < limit) {
      line.busy += 1
      return true
    }
    // Whoever leaves counts the one that it lets in.
    return new Promise((resolve) => {
      const end = (given: boolean): void => {
        clearTimeout(late)
        line.waiting.delete(end)
        resolve(given)
      }
      const late = setTimeout(() => end(false), patience)
      line.waiting.add(end)
    })
  }
  const leave = (kind: string, line: Line): void => {
    const [next] = line.waiting
    if (next) {
      next(true)
    } else {
      line.busy -= 1
      if (line.busy === 0) lines.delete(kind)
    }
  }

  return {
    async run(kind, work, patience) {
      const line = lines.get(kind) ?? { busy: 0, waiting: new Set() }
      lines.set(kind, line)
      if (!(await enter(line, patience))) return null
      try {
        return await work()
      } finally {
        leave(kind, line)
      }
    },
    close() {
      closed = true
      for (const { waiting } of lines.values()) for (const end of waiting) end(false)
    },
  }
}
