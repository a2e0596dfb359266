/** A counterpart over HTTP whose answers have no end, or unpack to far more than they seem. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'

const CHUNK = Buffer.alloc(64 * 1024, 'x')
/** What a reader without a limit reads before the test ends anyway. */
const ENOUGH = 96 * 1024 * 1024

/** `sent`: the bytes of bodies so far; `cut`: how many answers the reader has cut off. */
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

/** Responds to every request like this. `packed` is a small gzip of a large JSON object. */
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
