/**
 * Reads the bytes of a body from the socket, at once or in pieces, and drains rejected bodies. Never buffers more bytes
 * than `expect` and `hold` allow. The content is parsed by input.ts.
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { TEXTS } from './texts.ts'

const MIB = 1024 * 1024
export const MAX_BODY_BYTES = 10 * MIB
export const MAX_UPLOAD_BYTES = 25 * MIB
/** Limits for draining a rejected body. The last one is for the pauses between its chunks. */
const MAX_DISCARD_BYTES = 64 * 1024 * 1024
const MAX_DISCARD_MS = 10_000
const MAX_DISCARD_PAUSE_MS = 2_000
const JSON_TYPE = /^application\/json *(;|$)/i
const OTHER_CHARSET = /;\s*charset\s*=\s*(?!"?utf-?8\b)/i

/** Drops the rest of a body, within limits, so that a client that is still uploading can read the response. */
export const discard = (request: IncomingMessage): Promise<void> =>
  new Promise((resolve) => {
    const until = performance.now() + MAX_DISCARD_MS
    let left = MAX_DISCARD_BYTES
    const end = (): void => {
      clearTimeout(pause)
      for (const event of ['end', 'close', 'error']) request.off(event, end)
      request.off('data', count).pause()
      resolve()
    }
    const count = (chunk: Buffer): void => {
      left -= chunk.length
      pause.refresh()
      if (left < 0 || performance.now() > until) end()
    }
    const pause = setTimeout(end, MAX_DISCARD_PAUSE_MS)
    for (const event of ['end', 'close', 'error']) request.once(event, end)
    request.on('data', count).resume()
  })

const tooLarge = (limit: number): RequestError => {
  const most = limit < MIB ? `${limit / 1024} KiB` : `${Math.floor((limit / MIB) * 10) / 10} MiB`
  return new RequestError('payload_too_large', fill(TEXTS.tooLarge, { most }))
}

const readLength = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

export const hasBody = (request: IncomingMessage): boolean =>
  request.headers['transfer-encoding'] !== undefined || readLength(request) > 0

/** `expect` is called before reading, with the bytes to buffer at once, and `hold` before a chunk. Both can throw. */
type ReadOptions = {
  expect: (bytes: number) => Promise<void>
  hold: (bytes: number) => void
  limit?: number | undefined
}

/**
 * Reads a body, which may be empty. A rejected body isn't read to its end (see `discard`).
 * @throws RequestError payload_too_large, bad_request if it is incomplete, and what `expect` and `hold` throw
 */
export async function readBytes(
  request: IncomingMessage,
  { expect, hold, limit = MAX_BODY_BYTES }: ReadOptions,
): Promise<Buffer> {
  const check = (bytes: number): void => {
    if (bytes > limit) throw tooLarge(limit)
  }
  const length = readLength(request)
  check(length)
  await expect(length)
  // Filled chunk by chunk, so that the socket's chunks are released at once.
  const whole = Buffer.allocUnsafeSlow(length)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of unbroken(request)) {
    check(size + chunk.length)
    hold(chunk.length)
    if (length > 0) chunk.copy(whole, size)
    else chunks.push(chunk)
    size += chunk.length
  }
  return length > 0 ? whole : Buffer.concat(chunks)
}

/**
 * Reads a body in pieces of `size` bytes, and never buffers all of it. The last piece can be shorter.
 * @throws RequestError as `readBytes` does, and what `take` throws
 */
export async function readPieces(
  request: IncomingMessage,
  { expect, hold, limit = MAX_BODY_BYTES, size }: ReadOptions & { size: number },
  take: (piece: Buffer) => Promise<void>,
): Promise<void> {
  if (readLength(request) > limit) throw tooLarge(limit)
  await expect(size)
  // The maximum that is buffered at any time, in addition to a chunk of the socket.
  hold(size)
  let gathered: Buffer[] = []
  let bytes = 0
  let total = 0
  const cut = (): Buffer[] => {
    const whole = Buffer.concat(gathered)
    const pieces = Array.from({ length: Math.floor(whole.length / size) }, (_, index) =>
      whole.subarray(index * size, (index + 1) * size),
    )
    const rest = whole.subarray(pieces.length * size)
    gathered = rest.length > 0 ? [Buffer.from(rest)] : []
    bytes = rest.length
    return pieces
  }
  for await (const chunk of unbroken(request)) {
    total += chunk.length
    if (total > limit) throw tooLarge(limit)
    gathered.push(chunk)
    bytes += chunk.length
    if (bytes < size) continue
    for (const piece of cut()) await take(piece)
  }
  if (bytes > 0) await take(Buffer.concat(gathered))
}

/** Yields the chunks of a body. @throws RequestError bad_request if it is incomplete */
async function* unbroken(request: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    // Leaving the loop early doesn't close the connection.
    yield* request.iterator({ destroyOnReturn: false })
  } catch {
    // The client has disconnected, so no one reads this error.
    throw new RequestError('bad_request', TEXTS.incompleteBody)
  }
}

export function assertUncompressed(headers: IncomingHttpHeaders): void {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity')
    throw new RequestError('unsupported_media_type', TEXTS.compressedBody)
}

/** @throws RequestError unsupported_media_type, and as `readBytes` does */
export async function readJsonBytes(request: IncomingMessage, options: ReadOptions): Promise<Buffer> {
  if (!hasBody(request)) return readBytes(request, options)
  const { 'content-type': type = '' } = request.headers
  if (!JSON_TYPE.test(type) || OTHER_CHARSET.test(type))
    throw new RequestError('unsupported_media_type', TEXTS.bodyType)
  assertUncompressed(request.headers)
  return readBytes(request, options)
}
