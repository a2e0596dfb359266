/**
 * What a delivery has in flight: messages that are released, and not yet sent or let go.
 * Promises: large messages have room of their own, so that others are claimed however many of these wait. While that
 * is full, or the last of them found no memory, none of those that are known to be large is to be claimed; what turns
 * out to be large is put back only when far too many are in flight.
 */

export type InFlightBuffer = {
  add(sending: Promise<void>, is_large: boolean): void
  /** For how many more there is room, large ones apart. */
  room(): number
  /** Resolves when there is room for a batch, or when closed. */
  roomForBatch(): Promise<void>
  takesLarge(): boolean
  /** For how many large ones that are claimed already there is room. */
  roomForLarge(): number
  /** Takes no large ones until one of them has ended, or some seconds have passed: there was no memory for one. */
  barLarge(): void
  /** Resolves when all that is in flight now has ended. */
  empty(): Promise<unknown>
  close(): void
}

/** For how long a message waits that is large and finds no room, in seconds. */
export const ROOM_WAIT_S = 2

/** @param one whether all goes through one sender: then what is in flight moves on together. */
export function createInFlightBuffer(slots: number, ahead: number, one: boolean): InFlightBuffer {
  const small = new Set<Promise<void>>()
  const large = new Set<Promise<void>>()
  const most = slots * (1 + ahead)
  // With nothing ahead of the slots, to wait for a batch as large as all of them would empty them first; of many
  // senders, some may hang.
  const batch = ahead > 0 && one ? slots : Math.ceil(slots / 4)
  let freed = Promise.withResolvers<void>()
  let closed = false
  let barredUntil = Number.NEGATIVE_INFINITY
  return {
    add(sending, is_large) {
      const own = is_large ? large : small
      own.add(sending)
      sending.finally(() => {
        own.delete(sending)
        if (is_large) barredUntil = Number.NEGATIVE_INFINITY
        freed.resolve()
        freed = Promise.withResolvers()
      })
    },
    room: () => most - small.size,
    async roomForBatch() {
      while (!closed && most - small.size < batch) await freed.promise
    },
    takesLarge: () => large.size < slots && performance.now() >= barredUntil,
    // One batch more than is claimed for.
    roomForLarge: () => slots + most - large.size,
    barLarge() {
      barredUntil = performance.now() + ROOM_WAIT_S * 1_000
    },
    empty: () => Promise.all([...small, ...large]),
    close() {
      closed = true
      freed.resolve()
    },
  }
}
