/**
 * The database's time in this process: set at each look at the database, carried on by a clock that never jumps.
 * Promises: all processes agree on it, to the length of a round trip, whatever their machines' clocks say; a look that
 * takes long, or is heard late, moves it no further than the look proves.
 */
export type ServiceClock = {
  /** Waits for what the database was asked just now, and takes note of the time that its answer says. */
  setBy<A>(asking: Promise<A>, timeIn: (answer: A) => Date): Promise<A>
  /** @throws Error before the first answer. */
  now(): Date
}

export function createServiceClock(): ServiceClock {
  let ahead: number | null = null
  return {
    async setBy(asking, timeIn) {
      const asked = performance.now()
      const answer = await asking
      const at = timeIn(answer).getTime()
      // The database said so at some moment between the two.
      const [least, most] = [at - performance.now(), at - asked]
      ahead = ahead === null ? (least + most) / 2 : Math.min(Math.max(ahead, least), most)
      return answer
    },
    now() {
      if (ahead === null) throw new Error('the service clock has not been set yet')
      return new Date(ahead + performance.now())
    },
  }
}
