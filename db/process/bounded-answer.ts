/**
 * How every answer of a counterpart over HTTP is read: within a bound of bytes and a bound of time.
 * Promises: an answer comes unpacked, since nothing else is asked for, and one that is packed all the same is not read;
 * so the bytes received are the bytes kept. Redirects are not followed. Beyond a bound the connection is cut.
 * Must not know what an answer means.
 */
import { joinSignals } from './joined-signal.ts'

/** `bytes` of one body; `ms` from the first byte of the request to the last of the answer. */
export type Bounds = { bytes: number; ms: number; signal?: AbortSignal | undefined }

/** `body` is null when it was too large, packed or cut off: `fault` says so then, and the status stands alone. */
export type Answer = { status: number; ok: boolean; headers: Headers; body: Buffer | null; fault: string }

/** Thrown for more bytes than there may be. */
export class AnswerTooLarge extends Error {
  override name = 'AnswerTooLarge'
}

/** All bytes of a stream. @throws AnswerTooLarge once there are more than `most`, having ended the stream. */
export async function readWithin(chunks: AsyncIterable<Uint8Array>, most: number): Promise<Buffer> {
  const kept: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > most) throw new AnswerTooLarge(`the answer is larger than ${sizeWords(most)}`)
    kept.push(chunk)
  }
  return Buffer.concat(kept)
}

const sizeWords = (bytes: number): string =>
  bytes % 1_048_576 === 0 ? `${bytes / 1_048_576} MiB` : `${Math.floor(bytes / 1024)} KiB`

/** What AbortSignal.timeout says. */
const TOO_LATE = 'The operation was aborted due to timeout'

/** One request. @throws Error, as fetch does, when no answer begins; what goes wrong later is the answer's `fault`. */
export async function ask(
  url: string | URL,
  init: RequestInit,
  { bytes, ms, signal }: Bounds,
): Promise<Answer> {
  const headers = new Headers(init.headers)
  headers.set('Accept-Encoding', 'identity')
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new DOMException(TOO_LATE, 'TimeoutError')), ms)
  const joined = joinSignals(limit.signal, signal, init.signal)
  try {
    const response = await fetch(url, { ...init, headers, redirect: 'manual', signal: joined.signal })
    return await answerOf(response, bytes)
  } finally {
    clearTimeout(timer)
    joined.release()
  }
}

async function answerOf(response: Response, most: number): Promise<Answer> {
  const { status, ok, headers } = response
  try {
    return { status, ok, headers, body: await bodyOf(response, most), fault: '' }
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error)
    return { status, ok, headers, body: null, fault }
  }
}

async function bodyOf(response: Response, most: number): Promise<Buffer> {
  const packing = response.headers.get('content-encoding') ?? 'identity'
  if (packing !== 'identity' && response.body !== null) {
    await response.body.cancel()
    throw new Error('the answer is packed, though we asked for it as it is')
  }
  return response.body === null ? Buffer.alloc(0) : readWithin(response.body, most)
}

/** A `fetch` for libraries that ask by themselves: the same, within these bounds. */
export const boundedFetch =
  (bounds: Bounds) =>
  async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { status, headers, body, fault } = await ask(url, init, bounds)
    if (body === null) throw new Error(fault)
    return new Response(body.length === 0 ? null : new Uint8Array(body), { status, headers })
  }

/** Why no answer came, in words for people: what is in the causes of fetch's faults, which say nothing themselves. */
export function faultWords(error: unknown): string {
  const codes = [...new Set(faultCodes(error))]
  if (codes.length > 0) return codes.join(' ')
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return cause instanceof Error ? cause.message : String(cause)
}

/** The codes of an error, of its causes, and of each attempt at a host with several addresses. */
export function* faultCodes(error: unknown): Generator<string> {
  for (let fault = error; fault instanceof Error; fault = fault.cause) {
    const { code } = fault as { code?: unknown }
    if (typeof code === 'string') yield code
    if (fault instanceof AggregateError) for (const one of fault.errors) yield* faultCodes(one)
  }
}
