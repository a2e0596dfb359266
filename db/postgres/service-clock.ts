/**
 * The database's time in this process, set with each query of it and continued by a monotonic clock. All processes
 * agree to within a round trip. A slow query only limits the time to a wide range, so the clock moves as little as that
 * range requires.
 */
export function createServiceClock() {
  let ahead: number | null = null
  return {
    /** Waits for a query, and updates the clock with the time in its result. */
    async setBy<A>(asking: Promise<A>, timeIn: (answer: A) => Date): Promise<A> {
      const asked = performance.now()
      const answer = await asking
      const at = timeIn(answer).getTime()
      // The database's time was read between these two moments.
      const [least, most] = [at - performance.now(), at - asked]
      ahead = ahead === null ? (least + most) / 2 : Math.min(Math.max(ahead, least), most)
      return answer
    },
    /** @throws Error before the first result. */
    now(): Date {
      if (ahead === null) throw new Error('the service clock has not been set yet')
      return new Date(ahead + performance.now())
    },
  }
}

export type ServiceClock = ReturnType<typeof createServiceClock>
