/**
 * The bytes of a body, as the socket hands them over: whole, or piece by piece; and what is refused, thrown away.
 * Promises: no more is held than `expect` and `hold` have allowed. Must not know what is in them (input.ts).
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { TEXTS } from './texts.ts'

const MIB = 1024 * 1024
/** The most bytes of a body: of one whose route does not say, and of an upload. */
export const MAX_BODY_BYTES = 10 * MIB
export const MAX_UPLOAD_BYTES = 25 * MIB
/** How much of a refused body is read to its end, in bytes; for how long, and with what pauses, in milliseconds. */
const MAX_DISCARD_BYTES = 64 * 1024 * 1024
const MAX_DISCARD_MS = 10_000
const MAX_DISCARD_PAUSE_MS = 2_000
const JSON_TYPE = /^application\/json *(;|$)/i
const OTHER_CHARSET = /;\s*charset\s*=\s*(?!"?utf-?8\b)/i

/** Reads on and throws away, within bounds, so that a client in mid-upload lives to see the answer. */
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

/** The length that a body is said to have; 0 when it does not say. */
const lengthOf = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

export const hasBody = (request: IncomingMessage): boolean =>
  request.headers['transfer-encoding'] !== undefined || lengthOf(request) > 0

/**
 * How a body is read: at most `limit` bytes. `expect` gets the length that it is said to have before anything is read,
 * and `hold` each chunk before it is kept: both may refuse it.
 */
type ReadOptions = {
  expect: (bytes: number) => Promise<void>
  hold: (bytes: number) => void
  limit?: number | undefined
}

/**
 * The body as it came, which may be nothing. What is refused is not read to its end: see `discard`.
 * @throws RequestError payload_too_large, bad_request when it breaks off, and what `expect` and `hold` throw.
 */
export async function readBytes(
  request: IncomingMessage,
  { expect, hold, limit = MAX_BODY_BYTES }: ReadOptions,
): Promise<Buffer> {
  const check = (bytes: number): void => {
    if (bytes > limit) throw tooLarge(limit)
  }
  const length = lengthOf(request)
  check(length)
  await expect(length)
  // Filled as it comes: what the socket handed over is let go at once.
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
 * A body in pieces of a size, the last one shorter: handed over one at a time, and never held whole. Sizes are checked
 * as in `readBytes`. @throws RequestError as `readBytes` does, and what `take` throws
 */
export async function readPieces(
  request: IncomingMessage,
  { expect, hold, limit = MAX_BODY_BYTES, size }: ReadOptions & { size: number },
  take: (piece: Buffer) => Promise<void>,
): Promise<void> {
  if (lengthOf(request) > limit) throw tooLarge(limit)
  await expect(size)
  // What is held at most at any time: a piece, and what the socket hands over.
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

/** The body's chunks, to its very end. @throws RequestError bad_request when it breaks off */
async function* unbroken(request: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    // Leaving the loop early leaves the connection open.
    yield* request.iterator({ destroyOnReturn: false })
  } catch {
    // Nobody is left to read this answer.
    throw new RequestError('bad_request', TEXTS.incompleteBody)
  }
}

/** @throws RequestError unsupported_media_type */
export function assertUncompressed(headers: IncomingHttpHeaders): void {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity')
    throw new RequestError('unsupported_media_type', TEXTS.compressedBody)
}

/** The bytes of a body that has to be JSON. @throws RequestError unsupported_media_type, and as `readBytes` does */
export async function readJsonBytes(request: IncomingMessage, options: ReadOptions): Promise<Buffer> {
  if (!hasBody(request)) return readBytes(request, options)
  const { 'content-type': type = '' } = request.headers
  if (!JSON_TYPE.test(type) || OTHER_CHARSET.test(type))
    throw new RequestError('unsupported_media_type', TEXTS.bodyType)
  assertUncompressed(request.headers)
  return readBytes(request, options)
}
