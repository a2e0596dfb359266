/** An HTTP server whose responses are endless, or decompress to a huge size. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'

const CHUNK = Buffer.alloc(64 * 1024, 'x')
/** The maximum sent to a reader without a limit, so that the test ends anyway. */
const ENOUGH = 96 * 1024 * 1024

/** `sent` returns the bytes of bodies so far, and `cut` the number of responses that the reader aborted. */
type Flood = { url: string; sent(): number; cut(): number }

async function pour(response: ServerResponse): Promise<number> {
  let sent = 0
  function* chunks() {
    yield '{"data":[],"x":"'
    for (; sent < ENOUGH; sent += CHUNK.length) yield CHUNK
    yield '"}'
  }
  // The reader under test aborts the response.
  await pipeline(Readable.from(chunks()), response).catch(() => {})
  return sent
}

/** Starts a server with this response to every request. `packed` is a small gzip of a large JSON object. */
export async function startFlood(t: Test, kind: 'endless' | 'packed', status = 200): Promise<Flood> {
  const packed = gzipSync(`{"data":[],"x":"${'x'.repeat(8 * 1024 * 1024)}"}`)
  let sent = 0
  let cut = 0
  const server = createServer(async (request, response) => {
    request.resume()
    response.on('close', () => {
      if (!response.writableFinished) cut += 1
    })
    if (kind === 'packed') {
      response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' })
      response.end(packed)
      return
    }
    response.writeHead(status, { 'Content-Type': 'application/json' })
    sent += await pour(response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, sent: () => sent, cut: () => cut }
}
