/** The sends of an adapter that are under way, so that closing can wait for them. Must not know what they send. */

type SendTracker = {
  /** Counts a send until it ends, and passes on how it ended. */
  track<T>(send: Promise<T>): Promise<T>
  /** Resolves once all that are under way have ended, however. */
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
