/** Tracks an adapter's sends in progress, so that closing can wait for them. */

type SendTracker = {
  /** Counts a send until it ends, and returns its result. */
  track<T>(send: Promise<T>): Promise<T>
  /** Resolves once all current sends have ended, successfully or not. */
  settled(): Promise<void>
}

export function createSendTracker(): SendTracker {
  const sends = new Set<Promise<unknown>>()
  return {
    async track(send) {
      sends.add(send)
      try {
        return await send
      } finally {
        sends.delete(send)
      }
    },
    settled: async () => void (await Promise.allSettled(sends)),
  }
}
