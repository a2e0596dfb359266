/** Tracks an adapter's sends. `settled` resolves once those in progress have ended, successfully or not. */

type SendTracker = { track<T>(send: Promise<T>): Promise<T>; settled(): Promise<void> }

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
