/**
 * The database's time in this process: told at each look at the database, carried on by a clock that never jumps.
 * Promises: all workers agree on when a send began, to the length of a round trip, whatever their machines' clocks say.
 */
export type ServiceClock = {
  /** Takes note of what the database's time is now. */
  tell(now: Date): void
  /** @throws Error before the first `tell`. */
  now(): Date
}

export function createServiceClock(): ServiceClock {
  let ahead: number | null = null
  return {
    tell(now) {
      ahead = now.getTime() - performance.now()
    },
    now() {
      if (ahead === null) throw new Error('nobody has told the time yet')
      return new Date(ahead + performance.now())
    },
  }
}
