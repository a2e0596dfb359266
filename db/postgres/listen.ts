/**
 * LISTEN on one channel over a connection of its own.
 * Promises: comes back after a lost connection, and then says so, since notifications sent meanwhile are gone.
 * NOTIFY is a hint only: whoever listens must also poll.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'

export type Listener = { close(): Promise<void> }

const RECONNECT_PAUSE = 1_000
const HEARTBEAT = 10_000

async function connect(url: string, channel: string, onPayload: (payload: string) => void): Promise<Client> {
  const client = new Client({
    connectionString: url,
    application_name: 'heliograph listen',
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    query_timeout: 5_000,
  })
  // Errors surface as the end of the connection, which `listen` waits for.
  client.on('error', () => {})
  client.on('notification', ({ payload }) => onPayload(payload ?? ''))
  try {
    await client.connect()
    await client.query(`listen ${channel}`)
    return client
  } catch (error) {
    // Connected or not: whoever cannot listen must not hold a connection.
    client.end().catch(() => {})
    throw error
  }
}

/**
 * Listens until closed. `onReconnect` runs after each (re)connection: read once what may have been missed.
 * @param channel an SQL identifier, a constant of ours.
 */
export function listen(
  url: string,
  channel: string,
  { onPayload, onReconnect }: { onPayload: (payload: string) => void; onReconnect: () => void },
): Listener {
  const closing = new AbortController()
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const client = await connect(url, channel, onPayload).catch(() => null)
      if (client) {
        onReconnect()
        await untilLost(client, closing.signal)
        await client.end().catch(() => {})
      } else {
        await sleep(RECONNECT_PAUSE, undefined, { signal: closing.signal }).catch(() => {})
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

/** Resolves when the connection is lost, does not answer any more, or the listener closes. */
async function untilLost(client: Client, closing: AbortSignal): Promise<void> {
  const ended = new AbortController()
  client.once('end', () => ended.abort())
  const signal = AbortSignal.any([closing, ended.signal])
  while (!signal.aborted) {
    await sleep(HEARTBEAT, undefined, { signal }).catch(() => {})
    // A half-open connection never ends by itself.
    if (!signal.aborted) await client.query('select 1').catch(() => ended.abort())
  }
}
