/** The HTTP server. Even bytes that aren't HTTP get a response. Requests continue when their client disconnects. */

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
 * In milliseconds. Requests have no total limit, because a large upload on a slow connection may last long. Instead,
 * headers have a limit, bodies a minimum rate, and the deadline starts at the end of the body.
 */
const TIMEOUTS = {
  requestTimeout: 0,
  headersTimeout: 15_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
}

/** Much slower than usual connections. A slower body would only occupy a connection and memory. */
const MIN_BODY_PACE: BodyPace = { bytes: 128 * 1024, window: 50_000 }

/** Exceeds the deadline of every response (dispatch.ts). */
const MAX_SILENCE_MS = 70_000

/** How long a client has to read the error before its connection is closed, in milliseconds. */
const PARTING_MS = 1_000

// How long connections are still served after a stop signal, in milliseconds.
const LINGER_MS = 1_000

export const FLUSH_MS = 500

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** `drain` finishes the requests in flight and stops. @throws SettingsFault if it can't listen */
export async function serve(
  handler: RequestHandler,
  { PORT, HOST }: { PORT: number; HOST?: string | undefined },
  { pace, ...timeouts }: Partial<typeof TIMEOUTS> & { pace?: BodyPace } = {},
): Promise<{ port: number; drain: () => Promise<void> }> {
  // Allows requests without Host, because Node's response to them isn't in our envelope.
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
    /** Returns the response that a connection is waiting for. */
    answering: (socket: Duplex): ServerResponse | undefined =>
      [...inFlight.values()].find((response) => response.socket === socket),
    /** Closes each connection after its response from now on. Resolves when nothing is in flight. */
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

/** Sends an error and closes the connection, even if the client keeps its half open. */
function endWith(socket: Duplex, refusal: RequestError): void {
  const { status, body } = errorResponse(refusal)
  const json = JSON.stringify(body)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    // Its headers may not have been read, so the ID is always a new one.
    `X-Request-Id: ${randomUUID()}`,
  ]
  socket.end([...head, `Content-Length: ${json.length}`, '', json].join('\r\n'))
  setTimeout(() => socket.destroy(), PARTING_MS).unref()
}

/** Ends a connection with an error, after the response to an earlier, complete request. */
function refuse(socket: Duplex, refusal: RequestError, { answering }: Requests): void {
  const response = answering(socket)
  const end = (): void => endWith(socket, refusal)
  // A request whose body broke off never becomes complete.
  if (response?.req.complete) response.once('finish', end)
  else end()
}

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
  // An unknown `Expect` header isn't an error.
  server.on('checkExpectation', requests.handle)
}

async function drain(server: Server, requests: Requests): Promise<void> {
  const late = sleep(DRAIN_MS, undefined, { ref: false })
  const drained = requests.drain()
  // A request can still arrive on an idle connection, or on one that hasn't been accepted yet.
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
