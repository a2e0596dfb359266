/**
 * Serves a worker's health over HTTP: GET /health with the version while the process runs, and GET /ready while it
 * reaches its database and works. It is off unless HEALTH_PORT is set.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Database } from '../../db/postgres/pool.ts'
import { portFault } from '../../db/process/config.ts'
import { VERSION } from '../../db/process/version.ts'
import { databaseFault } from '../../db/start.ts'

type Health = { port: number; drain(): void; close(): Promise<void> }

/** Starts listening. @throws SettingsFault if it can't. */
export async function serveHealth(
  { database, diskFault }: { database: Database; diskFault: () => string | null },
  port: number,
): Promise<Health> {
  let draining = false
  const answers: Record<string, () => Promise<[status: number, words: string]>> = {
    '/health': async () => [200, 'ok'],
    '/ready': async () => {
      if (draining) return [503, 'draining']
      const full = diskFault()
      if (full !== null) return [503, full]
      return databaseFault(database).then(
        (fault) => (fault === null ? [200, 'ready'] : [503, fault]),
        () => [503, 'unavailable'],
      )
    },
  }
  const server = createServer(async (request, response) => {
    const answer = request.method === 'GET' ? answers[request.url ?? ''] : undefined
    const [status, words] = answer ? await answer() : [404, 'not found']
    response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' })
    const version = request.url === '/health' ? { version: VERSION } : {}
    response.end(JSON.stringify({ status: words, ...version }))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(portFault('HEALTH_PORT', port, error)))
    server.listen(port, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    drain: () => {
      draining = true
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
