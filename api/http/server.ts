/**
 * The HTTP server around the application: requests in flight, what never reaches the application, the drain.
 * Promises: even bytes that are not HTTP get an answer in the envelope. Work goes on when its client hangs up. The
 * drain lets requests in flight finish. Must not know routes.
 */

import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  maxHeaderSize,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { portFault } from '../../db/process/config.ts'
import { DRAIN_MS } from '../../db/process/shutdown.ts'
import { errorResponse } from './errors.ts'
import { type BodyPace, watchBodies } from './slow-bodies.ts'
import { TEXTS } from './texts.ts'

/**
 * In milliseconds. A request has no time limit as a whole, since a large upload over a slow line takes its time: its
 * headers have one, its body has a pace, and its deadline begins with the body's end. `connectionsCheckingInterval` is
 * how late slow headers and bodies are noticed.
 */
const TIMEOUTS = {
  requestTimeout: 0,
  headersTimeout: 15_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
}

/** Slower than any line of today's: what is slower holds a connection and memory for nothing. */
const MIN_BODY_PACE: BodyPace = { bytes: 128 * 1024, window: 50_000 }

/** How long a connection may be silent, in milliseconds: longer than any answer takes (dispatch.ts). */
const MAX_SILENCE_MS = 70_000

/** How long a client has for reading why it is sent away, in milliseconds. */
const PARTING_MS = 1_000

// How long connections are still served when the process is asked to stop, in milliseconds.
const LINGER_MS = 1_000

/** For the last answers to leave, in milliseconds. */
export const FLUSH_MS = 500

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Listens. `drain` ends it: the requests in flight finish first. @throws SettingsFault when it cannot. */
export async function serve(
  handler: RequestHandler,
  { PORT, HOST }: { PORT: number; HOST?: string | undefined },
  { pace, ...timeouts }: Partial<typeof TIMEOUTS> & { pace?: BodyPace } = {},
): Promise<{ port: number; drain: () => Promise<void> }> {
  // Accept requests without Host; Node would answer outside our envelope.
  const settings = { ...TIMEOUTS, ...timeouts, requireHostHeader: false }
  const bodies = watchBodies(pace ?? MIN_BODY_PACE, {
    interval: settings.connectionsCheckingInterval,
    cut: ({ socket }) => refuse(socket, new RequestError('bad_request', TOO_SLOW), requests),
  })
  const requests = trackRequests(handler, bodies)
  const server = createServer(settings, requests.handle)
  server.timeout = MAX_SILENCE_MS
  answerOutsiders(server, requests)
  await listenOn(server, PORT, HOST)
  return {
    port: (server.address() as AddressInfo).port,
    drain: () => drain(server, requests).finally(bodies.end),
  }
}

const TOO_SLOW = TEXTS.slowBody

type Requests = ReturnType<typeof trackRequests>

/** Knows the requests in flight: a client that hangs up does not end the work that it began. */
function trackRequests(handler: RequestHandler, bodies: Omit<ReturnType<typeof watchBodies>, 'end'>) {
  const inFlight = new Map<Promise<void>, ServerResponse>()
  let draining = false
  return {
    handle: (request: IncomingMessage, response: ServerResponse): void => {
      if (draining) response.shouldKeepAlive = false
      bodies.add(request)
      const work = handler(request, response).finally(() => {
        bodies.answered(request)
        inFlight.delete(work)
      })
      inFlight.set(work, response)
    },
    /** The answer that a connection still waits for, if any. */
    answering: (socket: Duplex): ServerResponse | undefined =>
      [...inFlight.values()].find((response) => response.socket === socket),
    /** From now on every answer ends its connection. @returns once nothing is in flight. */
    drain: async (): Promise<void> => {
      draining = true
      for (const response of inFlight.values()) response.shouldKeepAlive = false
      while (inFlight.size > 0) await Promise.allSettled(inFlight.keys())
    },
  }
}

const listenOn = async (server: Server, port: number, host: string | undefined): Promise<void> =>
  await new Promise((resolve, reject) => {
    server.once('error', (error) => reject(portFault('PORT', port, error)))
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => resolve())
  })

/** Answers, and lets go of the connection, whether the client closes its half or not. */
function endWith(socket: Duplex, refusal: RequestError): void {
  const { status, body } = errorResponse(refusal)
  const json = JSON.stringify(body)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    // Its headers may not have been read: the id is always ours.
    `X-Request-Id: ${randomUUID()}`,
  ]
  socket.end([...head, `Content-Length: ${json.length}`, '', json].join('\r\n'))
  setTimeout(() => socket.destroy(), PARTING_MS).unref()
}

/** Ends a connection. What was asked properly before is answered first. */
function refuse(socket: Duplex, refusal: RequestError, { answering }: Requests): void {
  const response = answering(socket)
  const end = (): void => endWith(socket, refusal)
  // A request that broke in mid-body never will be.
  if (response?.req.complete) response.once('finish', end)
  else end()
}

/** What never reaches the application is answered in the envelope like any other failure. */
function answerOutsiders(server: Server, requests: Requests): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const fault =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? fill(TEXTS.largeHeaders, { most: maxHeaderSize / 1024 })
        : TEXTS.unreadableRequest
    refuse(socket, new RequestError('bad_request', fault), requests)
  })
  server.on('connect', (_request, socket) =>
    endWith(socket, new RequestError('method_not_allowed', TEXTS.noConnect)),
  )
  // An expectation that we do not know is no reason to refuse.
  server.on('checkExpectation', requests.handle)
}

/**
 * Asks every client to come back on another connection, stops taking new ones, lets the requests in flight finish, and
 * closes the connections that are still open then.
 */
async function drain(server: Server, requests: Requests): Promise<void> {
  const late = sleep(DRAIN_MS, undefined, { ref: false })
  const drained = requests.drain()
  // A request may be on its way over a connection that is idle as yet, or that has not even been accepted.
  await sleep(LINGER_MS)
  await setImmediate()
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeIdleConnections()
  await Promise.race([drained.then(requests.drain), late])
  server.closeIdleConnections()
  await Promise.race([closed, sleep(FLUSH_MS, undefined, { ref: false })])
  server.closeAllConnections()
  await closed
}
