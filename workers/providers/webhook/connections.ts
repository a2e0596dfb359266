/**
 * Connections to teams' servers that stand between two webhooks.
 * Promises: one is used again only for the same scheme, name, port and the very addresses that the guard has passed
 * just now, so that none leads where a new one would not; an idle one ends within seconds. Must not vet anything.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { IDLE_CONNECTION_MS } from '../../../db/process/limited-response.ts'

export type Connections = {
  /** Where connections for such a request are kept. @param addresses those that the guard has passed. */
  of(url: URL, addresses: readonly string[]): HttpAgent
}

/** Servers whose connections are kept, and idle connections to each. */
const MAX_SERVERS = 200
const MAX_IDLE_PER_SERVER = 4

export function createConnections(): Connections {
  const known = new Map<string, HttpAgent>()
  return {
    of({ protocol, host }, addresses) {
      const key = [protocol, host, ...[...addresses].sort()].join(' ')
      const Agent = protocol === 'https:' ? HttpsAgent : HttpAgent
      const agent =
        known.get(key) ??
        new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_PER_SERVER, timeout: IDLE_CONNECTION_MS })
      known.delete(key)
      known.set(key, agent)
      const [oldest] = known
      if (known.size > MAX_SERVERS && oldest) {
        known.delete(oldest[0])
        // Idle ones end; what is under way goes on.
        for (const sockets of Object.values(oldest[1].freeSockets))
          for (const socket of sockets ?? []) socket.destroy()
      }
      return agent
    },
  }
}
