/**
 * Starts all our HTTP requests, and limits the data from a server. Bytes are counted before Node's parser sees them,
 * because one read can contain thousands of informational responses, and each costs the parser a turn. Every request
 * ends with the head of a response or with an error. `boundLibraries` limits the requests that libraries make.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'

/** `connect_ms` is the time limit for connecting. `bytes` limits the body of the response. */
type WireBounds = { connect_ms: number; bytes: number }

/** The response exceeds a limit. */
export class AnswerTooLarge extends Error {
  override name = 'AnswerTooLarge'
}

/** The limit for headers and trailers. Node limits a single header to 16 KiB. */
const HEADS_BYTES = 32 * 1024
/** The framing can be as large as the body. */
const FRAMING_FACTOR = 2
/** Data is passed on in pieces of this size or less. A piece counts as at least PIECE_COST. */
const LARGEST_PIECE = 8 * 1024
const PIECE_COST = 256
/** The smallest average size of body pieces. SPARE_PIECES are allowed in addition. */
const AVERAGE_PIECE = 64
const SPARE_PIECES = 256
/** The most informational responses before the final one. */
const MAX_BEFORE = 8
const INFORMATIONAL = /HTTP\/\d\.\d 1\d\d/g
/** One byte less than a match, to find matches that are split over two reads. */
const OVERLAP_BYTES = 11

/** The error code of a connection timeout. Nothing was sent. */
export const NO_CONNECTION = 'CONNECT_TIMEOUT'

/** Aborts a request that isn't connected in time. Reused connections already are. */
export function limitConnecting(asked: ClientRequest, ms: number): void {
  asked.once('socket', (socket) => {
    if (asked.reusedSocket) return
    const fault = Object.assign(new Error(`no connection within ${ms / 1_000} s`), { code: NO_CONNECTION })
    const late = setTimeout(() => asked.destroy(fault), ms)
    const stand = (): void => clearTimeout(late)
    socket.once(asked.protocol === 'https:' ? 'secureConnect' : 'connect', stand)
    asked.once('close', stand)
  })
}

const UNSENT = Symbol('unsent')

/** True if a request failed during its TLS handshake, so nothing was sent. */
export const isUnsent = (fault: unknown): boolean => fault instanceof Error && UNSENT in fault

/** Marks errors of a request between its connection and the end of its TLS handshake. */
function markUnsent(asked: ClientRequest): void {
  let isShaking = false
  asked.once('socket', (socket) => {
    if (asked.reusedSocket || asked.protocol !== 'https:') return
    socket.once('connect', () => {
      isShaking = true
    })
    socket.once('secureConnect', () => {
      isShaking = false
    })
  })
  asked.on('error', (fault: NodeJS.ErrnoException) => {
    if (isShaking && typeof fault.code === 'string') Object.assign(fault, { [UNSENT]: true })
  })
}

const BOUNDED = Symbol('bounded')
/** Marked once its limits are set. */
type Asked = ClientRequest & { [BOUNDED]?: true }

/**
 * Starts a request. `asked` is the request, which the caller can destroy. `response` resolves with the head of the
 * response.
 */
export function beginRequest(
  url: URL,
  { body, ...options }: RequestOptions & { body?: string | Uint8Array | undefined },
  { connect_ms, bytes }: WireBounds,
): { asked: ClientRequest; response: Promise<IncomingMessage> } {
  const asked: Asked = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options)
  asked[BOUNDED] = true
  limitConnecting(asked, connect_ms)
  markUnsent(asked)
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).on('error', reject)
    // A request that ends with a protocol upgrade closes without an error.
    asked.once('close', () => reject(new Error('the connection was closed without a response')))
  })
  asked.once('response', (answer) => limitPieces(answer, Math.ceil(bytes / AVERAGE_PIECE) + SPARE_PIECES))
  asked.once('socket', (socket) => limitBytes(asked, socket, HEADS_BYTES + FRAMING_FACTOR * bytes))
  asked.end(body)
  return { asked, response }
}

/** Node's event for each new request. */
const CREATED = 'http.client.request.created'

/**
 * Limits the requests that libraries make in this process: `bytes` of the response's body, and `ms` until it ends. If
 * a response is cut off, the request also emits an `error`, because some libraries don't listen to errors of
 * responses.
 * @returns a function that removes the limits.
 */
export function boundLibraries({ ms, bytes }: { ms: number; bytes: number }): () => void {
  const bound = (message: unknown): void => {
    const { request } = message as { request: Asked }
    request.once('socket', (socket: Socket) => {
      if (request[BOUNDED]) return
      request[BOUNDED] = true
      limitBytes(request, socket, HEADS_BYTES + FRAMING_FACTOR * bytes)
      const late = setTimeout(() => request.destroy(new Error(`no response within ${ms / 1_000} s`)), ms)
      request.once('close', () => clearTimeout(late))
    })
    request.once('response', (answer) =>
      answer.once('close', () => {
        if (!answer.complete && request.listenerCount('error') > 0)
          request.emit('error', answer.errored ?? new Error('the response is incomplete'))
      }),
    )
  }
  subscribe(CREATED, bound)
  return () => void unsubscribe(CREATED, bound)
}

/** Counts the bytes that a socket reads for a request, and cuts it off at the limit. */
function limitBytes(asked: ClientRequest, socket: Socket, most: number): void {
  let answer: IncomingMessage | null = null
  let left = most
  let before = 0
  let tail = ''
  const findFault = (piece: Buffer): string | null => {
    left -= Math.max(piece.length, PIECE_COST)
    if (left < 0) return `the response is larger than ${Math.floor(most / 1024)} KiB`
    if (answer !== null) return null
    const text = tail + piece.toString('latin1')
    tail = text.slice(-OVERLAP_BYTES)
    before += text.match(INFORMATIONAL)?.length ?? 0
    return before > MAX_BEFORE ? `more than ${MAX_BEFORE} informational responses` : null
  }
  const take = (piece: Buffer): boolean => {
    const fault = findFault(piece)
    if (fault === null) return push(socket, piece)
    const cut = answer ?? asked
    cut.destroy(new AnswerTooLarge(fault))
    return false
  }
  asked.once('response', (response) => {
    answer = response
  })
  socket.push = (read: Buffer | null) => {
    if (read === null) return push(socket, null)
    let more = true
    // In pieces, so that it can stop between two of them. They are small at first, so that only heads are
    // searched.
    for (let at = 0, size = 0; at < read.length && !socket.destroyed; at += size) {
      size = answer === null ? PIECE_COST : LARGEST_PIECE
      more = take(read.subarray(at, at + size))
    }
    return more && !socket.destroyed
  }
  asked.once('close', () => {
    socket.push = (read) => {
      if (read !== null) socket.destroy()
      return read === null && push(socket, null)
    }
  })
}

/** Limits the pieces of a body as the parser finds them. Each costs a turn, even if it is a single byte. */
function limitPieces(answer: IncomingMessage, most: number): void {
  let left = most
  answer.push = (piece: Buffer | null) => {
    left -= 1
    if (left >= 0 || piece === null) return push(answer, piece)
    answer.destroy(new AnswerTooLarge(`the response has more than ${most} pieces`))
    return false
  }
}

/** Passes data on as the stream's own `push` would. */
const push = (stream: Readable, read: Buffer | null): boolean => Readable.prototype.push.call(stream, read)
