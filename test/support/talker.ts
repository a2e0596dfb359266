/** A server that sends arbitrary bytes instead of proper HTTP. It closes with the test. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * Starts a server that calls `answer` at the first bytes of each connection.
 * @returns its port, and the number of open connections.
 */
export async function startTalker(t: Test, answer: (socket: Socket) => void) {
  const standing = new Set<Socket>()
  const server = createServer((socket) => {
    standing.add(socket)
    socket.on('error', () => {}).on('close', () => standing.delete(socket))
    socket.once('data', () => answer(socket)).resume()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of standing) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}/`, standing: () => standing.size }
}

/** Writes the same bytes repeatedly until the connection closes. */
export function pour(socket: Socket, text: string): void {
  const bytes = Buffer.from(text)
  const fill = (): void => {
    while (socket.write(bytes));
  }
  socket.on('drain', fill)
  fill()
}

/** Writes a text byte by byte. */
export function drip(socket: Socket, text: string): void {
  socket.setNoDelay(true)
  const next = (): void => {
    for (let each = 0; each < 20; each++) socket.write(text)
    if (!socket.destroyed) setImmediate(next)
  }
  next()
}
