/**
 * The database's time in this process: set at each look at the database, carried on by a clock that never jumps.
 * Promises: all processes agree on it, to the length of a round trip, whatever their machines' clocks say.
 */
export type ServiceClock = {
  /** Takes note of what the database's time is now. */
  set(now: Date): void
  /** @throws Error before the first `set`. */
  now(): Date
}

export function createServiceClock(): ServiceClock {
  let ahead: number | null = null
  return {
    set(now) {
      ahead = now.getTime() - performance.now()
    },
    now() {
      if (ahead === null) throw new Error('the service clock has not been set yet')
      return new Date(ahead + performance.now())
    },
  }
}
