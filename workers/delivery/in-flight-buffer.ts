/**
 * Tracks a delivery's messages in flight: released, but not yet sent or put back. Large messages have separate
 * capacity. If that is full, or the last large one found no memory, messages known to be large aren't claimed. A
 * message that only turns out to be large is put back only if far too many are in flight.
 */

/** How long a large message waits that doesn't fit, in seconds. */
export const ROOM_WAIT_S = 2

/** @param one is true if all messages have the same sender, and so proceed together. */
export function createInFlightBuffer(slots: number, ahead: number, one: boolean) {
  const small = new Set<Promise<void>>()
  const large = new Set<Promise<void>>()
  const most = slots * (1 + ahead)
  // With nothing ahead of the slots, waiting for a batch of their size would empty them first. With many
  // senders, some may hang.
  const batch = ahead > 0 && one ? slots : Math.ceil(slots / 4)
  let freed = Promise.withResolvers<void>()
  let closed = false
  let barredUntil = Number.NEGATIVE_INFINITY
  return {
    add(sending: Promise<void>, is_large: boolean): void {
      const own = is_large ? large : small
      own.add(sending)
      sending.finally(() => {
        own.delete(sending)
        if (is_large) barredUntil = Number.NEGATIVE_INFINITY
        freed.resolve()
        freed = Promise.withResolvers()
      })
    },
    room: (): number => most - small.size,
    async roomForBatch(): Promise<void> {
      while (!closed && most - small.size < batch) await freed.promise
    },
    takesLarge: (): boolean => large.size < slots && performance.now() >= barredUntil,
    /**
     * Returns the capacity for large messages that are already claimed: one full claim more than `takesLarge` allows,
     * because all of a claim may turn out to be large.
     */
    roomForLarge: (): number => slots + most - large.size,
    /** Blocks large messages until one has ended or some seconds have passed. Called if one found no memory. */
    barLarge(): void {
      barredUntil = performance.now() + ROOM_WAIT_S * 1_000
    },
    /** Resolves when everything that is in flight now has ended. */
    empty: (): Promise<unknown> => Promise.all([...small, ...large]),
    close(): void {
      closed = true
      freed.resolve()
    },
  }
}

export type InFlightBuffer = ReturnType<typeof createInFlightBuffer>
