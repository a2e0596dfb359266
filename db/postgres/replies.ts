/**
 * Waits for the stored result of a job, with LISTEN/NOTIFY and a slow poll. Uses one connection per process for any
 * number of callers. A lost notification only costs a poll interval.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { listen } from './listen.ts'
import { type Database, notify } from './pool.ts'

const CHANNEL = 'heliograph_replies'
const POLL_MS = 2_000
/** The poll interval of a CLI command, which doesn't listen. */
const COMMAND_POLL = 200

/** How to send the request, how to read the reply, and the timeout in milliseconds. */
type Question<T> = { send: () => Promise<void>; read: () => Promise<T | null>; timeout: number }

export type Replies = ReturnType<typeof createReplies>

/** Resolves when notified, or after `ms`. */
async function rungOrLate(bell: Promise<void>, ms: number): Promise<void> {
  const rung = new AbortController()
  const late = sleep(ms, undefined, { signal: rung.signal }).catch(() => {})
  await Promise.race([bell, late])
  rung.abort()
}

/** Starts listening, unless `url` is null. @param poll the poll interval, in milliseconds. */
export function createReplies(url: string | null, { poll = POLL_MS }: { poll?: number } = {}) {
  const bells = new Map<string, () => void>()
  let closing = false
  const listener = listen(url, CHANNEL, {
    onPayload: (key) => bells.get(key)?.(),
    onReconnect: () => {
      for (const ring of bells.values()) ring()
    },
  })
  return {
    /** Sends the request and waits. @returns what `read` finds, or null after the timeout. */
    async ask<T>(key: string, { send, read, timeout }: Question<T>): Promise<T | null> {
      let bell = Promise.withResolvers<void>()
      // Registered before the request is sent, so that no reply is missed.
      bells.set(key, () => bell.resolve())
      try {
        await send()
        const deadline = performance.now() + timeout
        for (;;) {
          const left = deadline - performance.now()
          await rungOrLate(bell.promise, Math.max(0, Math.min(poll, left)))
          bell = Promise.withResolvers()
          const reply = await read()
          if (reply !== null || closing || performance.now() >= deadline) return reply
        }
      } finally {
        bells.delete(key)
      }
    },
    async close() {
      closing = true
      for (const ring of bells.values()) ring()
      await listener.close()
    },
  }
}

/** Notifies the callers that wait for these keys: their replies are committed. */
export const announce = async (database: Database, keys: readonly string[]): Promise<void> =>
  await notify(database, CHANNEL, keys)

/**
 * Waits for the result of an earlier request, by polling only. For commands.
 * @returns what `read` finds, or null after `timeout` milliseconds.
 */
export async function awaitOutcome<T>(read: () => Promise<T | null>, timeout: number): Promise<T | null> {
  const replies = createReplies(null, { poll: COMMAND_POLL })
  try {
    return await replies.ask('outcome', { send: async () => {}, read, timeout })
  } finally {
    await replies.close()
  }
}
