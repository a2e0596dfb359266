/**
 * Listens on one channel with its own connection. Reconnects after a loss and reports that. NOTIFY is only a hint:
 * listeners must also poll.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { connect, isPooled } from './connect.ts'

export type Listener = { close(): Promise<void> }

const RECONNECT_PAUSE_MS = 1_000
const HEARTBEAT_MS = 10_000

async function subscribe(url: string, channel: string, onPayload: (payload: string) => void) {
  const client = await connect(url, {
    application_name: 'heliograph listen',
    connectionTimeoutMillis: 5_000,
    query_timeout: 5_000,
  })
  client.on('notification', ({ payload }) => onPayload(payload ?? ''))
  try {
    await client.query(`listen ${channel}`)
    return client
  } catch (error) {
    // A client that can't listen must not keep a connection.
    client.end().catch(() => {})
    throw error
  }
}

/**
 * Returns the URL for LISTEN: the direct one, otherwise the process's own. Null behind a pooler, where LISTEN doesn't
 * work: the process must poll.
 */
export async function listeningUrl(url: string, directUrl?: string): Promise<string | null> {
  if (directUrl !== undefined) return directUrl
  return (await isPooled(url)) ? null : url
}

/**
 * Listens until closed. `onReconnect` runs after each (re)connection, so that callers can read missed changes.
 * @param url null: receives nothing, and the caller polls. @param channel an SQL identifier, a constant of ours.
 */
export function listen(
  url: string | null,
  channel: string,
  { onPayload, onReconnect }: { onPayload: (payload: string) => void; onReconnect: () => void },
): Listener {
  if (url === null) return { close: async () => {} }
  const closing = new AbortController()
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const client = await subscribe(url, channel, onPayload).catch(() => null)
      if (client) {
        onReconnect()
        await untilLost(client, closing.signal)
        await client.end().catch(() => {})
      } else {
        await sleep(RECONNECT_PAUSE_MS, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }
  const running = run()
  return {
    async close() {
      closing.abort()
      await running
    },
  }
}

/** Resolves when the connection is lost or no longer responds, or the listener closes. */
async function untilLost(client: Client, closing: AbortSignal): Promise<void> {
  const ended = new AbortController()
  client.once('end', () => ended.abort())
  const signal = AbortSignal.any([closing, ended.signal])
  while (!signal.aborted) {
    await sleep(HEARTBEAT_MS, undefined, { signal }).catch(() => {})
    // A half-open connection never ends by itself.
    if (!signal.aborted) await client.query('select 1').catch(() => ended.abort())
  }
}
