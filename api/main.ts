/**
 * The API process: settings, pool, queue, listen, drain.
 * Promises: a missing setting stops it at once with a message naming it; SIGTERM lets requests in flight finish
 * (within 25 s) and exits 0.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { createTxtLookup } from '../db/domains/verify.ts'
import { Refusal } from '../db/errors.ts'
import { openDatabase } from '../db/postgres/pool.ts'
import { createReplies } from '../db/postgres/replies.ts'
import { SettingsFault } from '../db/process/config.ts'
import { createLog, type Log } from '../db/process/log.ts'
import { createMetrics } from '../db/process/metrics.ts'
import { createSecrets } from '../db/process/secrets.ts'
import { DRAIN, failToStart, stopOnSignal } from '../db/process/shutdown.ts'
import { createTurns } from '../db/process/turns.ts'
import { openProducer } from '../db/queue/boss.ts'
import { createWaker } from '../db/queue/wake.ts'
import { createVersions } from '../db/templates/versions.ts'
import { createApp } from './app.ts'
import { type ApiSettings, hookSettings, openIdSettings, readApiSettings, snsTopics } from './config.ts'
import { createOpenId } from './dashboard/openid.ts'
import type { DashboardDeps } from './dashboard/page.ts'
import { refusalAnswer } from './errors.ts'
import { createSns } from './hooks/sns.ts'
import { createCatalog } from './plan-cache.ts'

// In milliseconds. A slow upload may take a minute, headers included (a request's deadline begins with the body's
// end); slow headers may not.
const TIMEOUTS = { requestTimeout: 60_000, headersTimeout: 15_000, keepAliveTimeout: 65_000 }
// A missing Host is no matter to us, and Node would refuse it without our envelope.
const SERVER = { ...TIMEOUTS, requireHostHeader: false }

// How long connections are still served when the process is told to end, in milliseconds.
const LINGER = 1_000

// For the last answers to leave, in milliseconds.
const FLUSH = 500

// As decisions.md says; shorter than the deadline of any request, and no longer than the grace of a shutdown.
const UPSERT_WAIT = 25_000

// How long a statement waits for a row that somebody else holds, in milliseconds; then 503 (reliability §5).
const LOCK_WAIT = 3_000

// The dashboard's own connections: its pages wait for each other, and never keep the API waiting.
const DASHBOARD_POOL = { size: 3, statementTimeout: 5_000, lockTimeout: LOCK_WAIT }

/** Opens what the dashboard has of its own. */
async function openDashboard(settings: ApiSettings): Promise<DashboardDeps> {
  const openid = openIdSettings(settings)
  return {
    database: await openDatabase(settings.DATABASE_URL, DASHBOARD_POOL),
    lookupTxt: await createTxtLookup(settings.DNS_SERVER),
    publicUrl: settings.PUBLIC_URL ?? null,
    from: settings.DASHBOARD_FROM ?? null,
    openid: openid && createOpenId(openid),
  }
}

/** Opens what the API needs, and listens. */
async function start(settings: ApiSettings, log: Log) {
  const size = settings.DATABASE_POOL_SIZE
  const database = await openDatabase(settings.DATABASE_URL, { size, lockTimeout: LOCK_WAIT })
  const queue = await openProducer(settings.DATABASE_URL, (error) => log.warn({ err: error }, 'queue error'))
  const replies = createReplies(settings.DATABASE_URL)
  const dashboard = settings.DASHBOARD === 'off' ? null : await openDashboard(settings)
  const app = createApp({
    database,
    turns: createTurns(Math.ceil(size / 2)),
    queue,
    secrets: createSecrets(settings.SECRET_KEY),
    versions: createVersions(),
    catalog: createCatalog(),
    wake: createWaker(database),
    hooks: hookSettings(settings),
    replies,
    upsertWait: UPSERT_WAIT,
    metrics: createMetrics(),
    metricsToken: settings.METRICS_TOKEN ?? null,
    sns: createSns({ topics: snsTopics(settings) }),
    dashboard,
    log,
    clock: () => new Date(),
  })
  const requests = trackRequests(app.callback())
  const server = createServer(SERVER, requests.handle)
  answerOutsiders(server, requests)
  await listenOn(server, settings.PORT)
  const stop = async (): Promise<void> => {
    // Whoever waits for a worker until then gets an answer still.
    const impatience = setTimeout(() => void replies.close(), DRAIN - FLUSH)
    await drain(server, requests)
    clearTimeout(impatience)
    await Promise.allSettled([replies.close(), queue.stop(), database.end(), dashboard?.database.end()])
  }
  return { server, stop }
}

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

type Requests = ReturnType<typeof trackRequests>

/** Knows the requests in flight: a client that hangs up does not end the work that it began. */
function trackRequests(handler: RequestHandler) {
  const inFlight = new Map<Promise<void>, ServerResponse>()
  let draining = false
  return {
    handle: (request: IncomingMessage, response: ServerResponse): void => {
      if (draining) response.shouldKeepAlive = false
      const work = handler(request, response).finally(() => inFlight.delete(work))
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

const listenOn = async (server: Server, port: number): Promise<void> =>
  await new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE' ? new SettingsFault([`PORT ${port} is taken by another program`]) : error,
      ),
    )
    server.listen(port, () => resolve())
  })

function endWith(socket: Duplex, refusal: Refusal): void {
  const { status, body } = refusalAnswer(refusal)
  const json = JSON.stringify(body)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
  ]
  socket.end([...head, `Content-Length: ${json.length}`, '', json].join('\r\n'))
}

/** What never reaches the application is answered in the envelope like any other failure. */
function answerOutsiders(server: Server, { handle, answering }: Requests): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return
    const refuse = (): void => endWith(socket, new Refusal('bad_request', 'the request could not be read'))
    // What was asked properly before is answered first.
    const response = answering(socket)
    if (response) response.once('finish', refuse)
    else refuse()
  })
  server.on('connect', (_request, socket) =>
    endWith(socket, new Refusal('method_not_allowed', 'this is no proxy')),
  )
  // An expectation that we do not know is no reason to refuse.
  server.on('checkExpectation', handle)
}

/**
 * Tells every client to come back on another connection, stops taking new ones, lets the requests in flight finish, and
 * cuts off whoever still holds a connection then.
 */
async function drain(server: Server, requests: Requests): Promise<void> {
  const late = sleep(DRAIN, undefined, { ref: false })
  const drained = requests.drain()
  // A request may be on its way over a connection that is idle as yet, or that has not even been accepted.
  await sleep(LINGER)
  await setImmediate()
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeIdleConnections()
  await Promise.race([drained.then(requests.drain), late])
  server.closeIdleConnections()
  await Promise.race([closed, sleep(FLUSH, undefined, { ref: false })])
  server.closeAllConnections()
  await closed
}

async function main(): Promise<void> {
  const settings = readApiSettings()
  const log = await createLog({ name: 'api', ...settings })
  const { server, stop } = await start(settings, log)
  const { port } = server.address() as AddressInfo
  log.info({ port }, 'listening')
  stopOnSignal(log, stop, { port })
}

main().catch(failToStart)
