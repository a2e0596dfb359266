/** Runs a server on a free port until the test ends. */
import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { Teardown } from './smtp-sink.ts'

/** Listens on a free port. @returns the port. When the test ends, open connections are closed. */
export async function portOf(t: Teardown, server: Server, host = '127.0.0.1'): Promise<number> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => open.add(socket.once('close', () => open.delete(socket))))
  await once(server.listen(0, host), 'listening')
  t.teardown(async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}
