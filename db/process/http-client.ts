/**
 * Begins every request of ours over HTTP, and bounds what the other side may say to it.
 * Promises: what comes off the wire, whatever it is (informational answers, heads, framing, trailers), is counted and
 * cut off before Node's parser sees it, since one read holds thousands of answers that each take it a turn; a request
 * always ends, with the head of an answer or an error; who speaks unasked is hung up on. Requests that a library begins
 * by itself are bounded too (`boundLibraries`). Must not know what an answer means.
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

/** `connect_ms` until the connection stands, `bytes` of the answer's body. */
type WireBounds = { connect_ms: number; bytes: number }

/** Thrown for more than there may be. */
export class AnswerTooLarge extends Error {
  override name = 'AnswerTooLarge'
}

/** For headers and trailers. A single header may have 16 KiB, by Node's limit. */
const HEADS_BYTES = 32 * 1024
/** The framing of a body is given as much as the body. */
const FRAMING_FACTOR = 2
/** What is handed on at once, and what a piece counts at least: a byte that comes by itself costs as much. */
const LARGEST_PIECE = 8 * 1024
const PIECE_COST = 256
/** How small the pieces of a body may be on the whole, and how many it may have at any rate. */
const AVERAGE_PIECE = 64
const SPARE_PIECES = 256
/** Informational answers before the answer. */
const MAX_BEFORE = 8
const INFORMATIONAL = /HTTP\/\d\.\d 1\d\d/g
/** One byte less than makes one, kept for what comes in two reads. */
const OVERLAP_BYTES = 11

/** The code for a connection timeout. Nothing of the request has been sent. */
export const NO_CONNECTION = 'CONNECT_TIMEOUT'

/** Gives up a request whose connection does not stand in time. A kept one stands already. */
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

/** Whether a fault came while a request's connection was being encrypted: nothing of the request can have left. */
export const isUnsent = (fault: unknown): boolean => fault instanceof Error && UNSENT in fault

/** Marks the faults of others that end a request between its connection and the end of its TLS handshake. */
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
/** Marked once it is bounded. */
type Asked = ClientRequest & { [BOUNDED]?: true }

/** Starts a request. `asked` ends it. `response` is the head of its response. */
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
    // One that is answered by a change of protocol closes without an error.
    asked.once('close', () => reject(new Error('the connection was closed without an answer')))
  })
  asked.once('response', (answer) => limitPieces(answer, Math.ceil(bytes / AVERAGE_PIECE) + SPARE_PIECES))
  asked.once('socket', (socket) => limitWords(asked, socket, HEADS_BYTES + FRAMING_FACTOR * bytes))
  asked.end(body)
  return { asked, response }
}

/** Node's event for each new request. */
const CREATED = 'http.client.request.created'

/**
 * Bounds the requests that libraries make in this process: `bytes` of an answer's body, `ms` until its end. One that is
 * cut off, or breaks off, is an `error` of its request: not every library listens to its answer's.
 * @returns how to end it.
 */
export function boundLibraries({ ms, bytes }: { ms: number; bytes: number }): () => void {
  const bound = (message: unknown): void => {
    const { request } = message as { request: Asked }
    request.once('socket', (socket: Socket) => {
      if (request[BOUNDED]) return
      request[BOUNDED] = true
      limitWords(request, socket, HEADS_BYTES + FRAMING_FACTOR * bytes)
      const late = setTimeout(() => request.destroy(new Error(`no answer within ${ms / 1_000} s`)), ms)
      request.once('close', () => clearTimeout(late))
    })
    request.once('response', (answer) =>
      answer.once('close', () => {
        if (!answer.complete && request.listenerCount('error') > 0)
          request.emit('error', answer.errored ?? new Error('the answer broke off'))
      }),
    )
  }
  subscribe(CREATED, bound)
  return () => void unsubscribe(CREATED, bound)
}

/** Counts what a socket has read for a request, and hands it on while it may be. */
function limitWords(asked: ClientRequest, socket: Socket, most: number): void {
  let answer: IncomingMessage | null = null
  let left = most
  let before = 0
  let tail = ''
  const faultOf = (piece: Buffer): string | null => {
    left -= Math.max(piece.length, PIECE_COST)
    if (left < 0) return `the answer is larger than ${Math.floor(most / 1024)} KiB`
    if (answer !== null) return null
    const text = tail + piece.toString('latin1')
    tail = text.slice(-OVERLAP_BYTES)
    before += text.match(INFORMATIONAL)?.length ?? 0
    return before > MAX_BEFORE ? `more than ${MAX_BEFORE} answers before the answer` : null
  }
  const take = (piece: Buffer): boolean => {
    const fault = faultOf(piece)
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
    // In pieces, so that it can end between two of them; in small ones at first, so that heads alone are searched.
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

/** Counts the pieces of a body as the parser finds them: each of them costs a turn, and a byte can be one. */
function limitPieces(answer: IncomingMessage, most: number): void {
  let left = most
  answer.push = (piece: Buffer | null) => {
    left -= 1
    if (left >= 0 || piece === null) return push(answer, piece)
    answer.destroy(new AnswerTooLarge(`the answer has more than ${most} pieces`))
    return false
  }
}

/** Hands on what was read, as the stream itself would. */
const push = (stream: Readable, read: Buffer | null): boolean => Readable.prototype.push.call(stream, read)
