/** Finds a free port for programs that can't pick one. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Returns a port of 127.0.0.1 that was free. Another program may use it by now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
