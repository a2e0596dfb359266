/**
 * Sends one request to a team's server, and interprets its response. It connects to a vetted address, with the URL's
 * name for TLS and Host. It follows no redirects and uses no proxy. Time and bytes read are limited. It never throws.
 */
import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { isIP } from 'node:net'
import { AnswerTooLarge, beginRequest } from '../../../db/process/http-client.ts'
import { BROKE_OFF, describeFailure, secondsUntil } from '../../../db/process/limited-response.ts'
import { type Network, NotPublic, type Resolve, vettedAddresses } from '../../../db/process/public-address.ts'
import type { Connections } from './connections.ts'

export type WebhookDelivery = {
  concurrency: number
  allowed: readonly Network[]
  resolve: Resolve
  /** The delays before each further attempt, in seconds. */
  pauses: readonly number[]
}

/** The retry delays of a message that isn't accepted: ten attempts in three days. */
export const RETRY_PAUSES_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** If no response came, `status` is null and `response` has the reason. */
export type WebhookAnswer = {
  status: number | null
  ms: number
  response: string
  /** How many seconds to wait, because the server requests it or sent too much. Null if neither. */
  wait_seconds: number | null
}

type Given = { url: string; headers: Readonly<Record<string, string>>; body: string }

/** Milliseconds until the connection must be open, and until everything must be done. */
const CONNECT_TIMEOUT_MS = 5_000
const POST_TIMEOUT_MS = 15_000
/** Bytes of a response that are read, and that are kept. */
const MAX_READ_BYTES = 64 * 1_024
const MAX_KEPT_BYTES = 1_024
/** A longer wait in a server's response is reduced to this, in seconds. */
const MAX_WAIT_S = 86_400
/**
 * How long a server that sends too large a response is paused, in seconds, because we receive that much at each
 * attempt.
 */
const FLOOD_WAIT_S = 300

/** Posts a body. @param cut ends the wait for a response. */
export async function postWebhook(
  { url, headers, body }: Given,
  {
    allowed,
    resolve,
    connections,
  }: Pick<WebhookDelivery, 'allowed' | 'resolve'> & { connections: Connections },
  cut: AbortSignal,
): Promise<WebhookAnswer> {
  const started = performance.now()
  const end = (status: number | null, response: string, wait_seconds: number | null = null) => ({
    ...{ status, response, wait_seconds },
    ms: Math.round(performance.now() - started),
  })
  const limit = limitTry(cut)
  try {
    const target = new URL(url)
    const addresses = await limit.within(vettedAddresses(target, { resolve, allowed }))
    const given = { headers, body, limit }
    const agent = connections.of(target, addresses)
    const { status, said, text } = await exchange(target, addresses, { ...given, agent }).catch(
      (error: unknown) => {
        // Its server closed the idle connection at this very moment.
        if (error instanceof Stale) return exchange(target, addresses, { ...given, agent: false })
        throw error
      },
    )
    const asks = status === 429 || status === 503
    return end(status, text, asks ? readWait(said) : null)
  } catch (error) {
    if (error instanceof NotPublic) return end(null, error.message)
    if (error instanceof AnswerTooLarge) return end(null, error.message, FLOOD_WAIT_S)
    return end(null, limit.reason() ?? describeFailure(error))
  } finally {
    limit.release()
  }
}

/**
 * Ends an attempt after its timeout, or when `cut` is aborted. It creates no signal, because two signals and their
 * listeners used a twentieth of a worker's time per webhook.
 */
function limitTry(cut: AbortSignal) {
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => {})
  let reason: string | null = null
  let bound: ClientRequest | null = null
  const end = (words: string): void => {
    reason ??= words
    ended.reject(new Error(reason))
    bound?.destroy(new Error(reason))
  }
  const onCut = (): void => end('aborted: the worker shut down')
  const timer = setTimeout(end, POST_TIMEOUT_MS, `no response within ${POST_TIMEOUT_MS / 1_000} s`)
  cut.addEventListener('abort', onCut)
  if (cut.aborted) onCut()
  return {
    reason: () => reason,
    within: <T>(work: Promise<T>): Promise<T> => Promise.race([work, ended.promise]),
    bind(asked: ClientRequest): void {
      bound = asked
      if (reason !== null) asked.destroy(new Error(reason))
    },
    release(): void {
      clearTimeout(timer)
      cut.removeEventListener('abort', onCut)
    },
  }
}

type Limit = ReturnType<typeof limitTry>

/** Returns Retry-After in seconds. Null without it. */
function readWait(headers: IncomingHttpHeaders): number | null {
  const seconds = secondsUntil(headers)
  return Number.isFinite(seconds) ? Math.min(MAX_WAIT_S, Math.max(1, Math.ceil(seconds))) : null
}

class Stale extends Error {
  override name = 'Stale'
}

type Exchanged = { status: number; said: IncomingHttpHeaders; text: string }

async function exchange(
  url: URL,
  addresses: readonly string[],
  { headers, body, limit, agent }: Pick<Given, 'headers' | 'body'> & { limit: Limit; agent: Agent | false },
): Promise<Exchanged> {
  const options = {
    method: 'POST',
    agent,
    lookup: only(addresses),
    body,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Heliograph-Webhooks/1.0',
      'accept-encoding': 'identity',
      accept: '*/*',
    },
  }
  const { asked, response } = beginRequest(url, options, {
    connect_ms: CONNECT_TIMEOUT_MS,
    bytes: MAX_READ_BYTES,
  })
  limit.bind(asked)
  const answer = await response.catch((error: NodeJS.ErrnoException) => {
    throw asked.reusedSocket && error.code === 'ECONNRESET' ? new Stale() : error
  })
  const { statusCode: status = 0 } = answer
  return { status, said: answer.headers, text: await readBeginning(answer) }
}

/** Returns a lookup that gives the vetted addresses for any name. */
const only =
  (addresses: readonly string[]): LookupFunction =>
  (_hostname, options, answer) => {
    const found = addresses.map((address) => ({ address, family: isIP(address) }))
    const [first] = found
    if (options.all || !first) answer(null, found)
    else answer(null, first.address, first.family)
  }

/** Returns the first KiB of a response. No more than 64 KiB is read, and a longer response isn't awaited. */
const readBeginning = (response: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    const kept: Uint8Array[] = []
    let size = 0
    const end = (): void => resolve(Buffer.concat(kept).subarray(0, MAX_KEPT_BYTES).toString('utf8'))
    response.on('data', (chunk: Uint8Array) => {
      if (size < MAX_KEPT_BYTES) kept.push(chunk)
      size += chunk.length
      if (size <= MAX_READ_BYTES) return
      end()
      response.destroy()
    })
    response.on('end', end)
    response.on('error', reject)
    // It also closes after its end.
    response.on('close', () => {
      if (!response.complete) reject(new Error(BROKE_OFF))
    })
    if (response.closed) reject(response.errored ?? new Error(BROKE_OFF))
  })
