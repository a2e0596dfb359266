/**
 * Keeps connections to teams' servers between webhooks. One is only reused for the same scheme, name, port and the
 * exact addresses that were just vetted, so that it leads where a new one would. Vets nothing itself. An idle
 * connection closes within seconds.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { IDLE_CONNECTION_MS } from '../../../db/process/limited-response.ts'

/** The number of servers with kept connections, and of idle connections per server. */
const MAX_SERVERS = 200
const MAX_IDLE_PER_SERVER = 4

export function createConnections() {
  const known = new Map<string, HttpAgent>()
  return {
    /** Returns the agent that keeps connections for such a request. @param addresses the vetted ones. */
    of({ protocol, host }: URL, addresses: readonly string[]): HttpAgent {
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
        // Idle connections end. Requests in progress continue.
        for (const sockets of Object.values(oldest[1].freeSockets))
          for (const socket of sockets ?? []) socket.destroy()
      }
      return agent
    },
  }
}

export type Connections = ReturnType<typeof createConnections>
