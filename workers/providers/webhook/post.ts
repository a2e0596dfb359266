/**
 * One request to a team's own server, and what its answer means.
 * Promises: it goes to an address that the guard has passed for it, by the name of the URL (TLS and Host), over a
 * connection that stands to that very address or a new one; never elsewhere: no redirect, no proxy. Bounded in time
 * and in what is read. Never throws. Must not know what the body says.
 */
import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { isIP } from 'node:net'
import { AnswerTooLarge, beginRequest } from '../../../db/process/http-client.ts'
import { BROKE_OFF, faultWords, secondsUntil } from '../../../db/process/limited-response.ts'
import { type Network, NotPublic, type Resolve, vettedAddresses } from '../../../db/process/public-address.ts'
import type { Connections } from './connections.ts'

export type WebhookDelivery = {
  /** How many requests are under way at once in this process: WEBHOOK_CONCURRENCY. */
  concurrency: number
  /** Private networks that may be reached: WEBHOOK_ALLOW. */
  allowed: readonly Network[]
  resolve: Resolve
  /** The pauses before each further try, in seconds. */
  pauses: readonly number[]
}

/** Pauses of a message that is not taken: ten tries in three days. */
export const RETRY_PAUSES_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** `status` null: no answer came, and `response` says why. */
export type WebhookAnswer = {
  status: number | null
  ms: number
  response: string
  /** For how many seconds the server asks to wait, or has to. */
  wait_seconds: number | null
}

type Given = { url: string; headers: Readonly<Record<string, string>>; body: string }

/** Milliseconds: until the connection stands, and until all is over. */
const CONNECT_TIMEOUT_MS = 5_000
const POST_TIMEOUT_MS = 15_000
/** Bytes of an answer that are read, and kept. */
const MAX_READ_BYTES = 64 * 1_024
const MAX_KEPT_BYTES = 1_024
/** The longest that a server may ask to wait, in seconds. */
const MAX_WAIT_S = 86_400
/** How long one is left alone that has sent more than an answer may be, in seconds: each try costs us its flood. */
const FLOOD_WAIT_S = 300

/** Posts a body. @param cut ends the wait for an answer. */
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
        // Its server has closed what stood idle in this very moment.
        if (error instanceof Stale) return exchange(target, addresses, { ...given, agent: false })
        throw error
      },
    )
    const asks = status === 429 || status === 503
    return end(status, text, asks ? waitOf(said) : null)
  } catch (error) {
    if (error instanceof NotPublic) return end(null, error.message)
    if (error instanceof AnswerTooLarge) return end(null, error.message, FLOOD_WAIT_S)
    return end(null, limit.reason() ?? faultWords(error))
  } finally {
    limit.release()
  }
}

/** What ends a try before its answer has come. */
type Limit = {
  /** Why it has ended; null while it has not. */
  reason(): string | null
  /** The work, unless the try ends first. */
  within<T>(work: Promise<T>): Promise<T>
  /** Ends a request with the try. */
  bind(asked: ClientRequest): void
  release(): void
}

/**
 * Ends a try when its time is over, or as `cut` says. No signal of its own: two of these and what listens to them took
 * a twentieth of a worker's time for a webhook.
 */
function limitTry(cut: AbortSignal): Limit {
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => {})
  let reason: string | null = null
  let bound: ClientRequest | null = null
  const end = (words: string): void => {
    reason ??= words
    ended.reject(new Error(reason))
    bound?.destroy(new Error(reason))
  }
  const onCut = (): void => end('cut off: the worker had to end')
  const timer = setTimeout(end, POST_TIMEOUT_MS, `no answer within ${POST_TIMEOUT_MS / 1_000} s`)
  cut.addEventListener('abort', onCut)
  if (cut.aborted) onCut()
  return {
    reason: () => reason,
    within: (work) => Promise.race([work, ended.promise]),
    bind(asked) {
      bound = asked
      if (reason !== null) asked.destroy(new Error(reason))
    },
    release() {
      clearTimeout(timer)
      cut.removeEventListener('abort', onCut)
    },
  }
}

/** What Retry-After says, in seconds; null when it says nothing. */
function waitOf(headers: IncomingHttpHeaders): number | null {
  const seconds = secondsUntil(headers)
  return Number.isFinite(seconds) ? Math.min(MAX_WAIT_S, Math.max(1, Math.ceil(seconds))) : null
}

/** Thrown when a connection that stood was closed before anything was answered. */
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
  return { status, said: answer.headers, text: await beginningOf(answer) }
}

/** Answers with the vetted addresses, whatever name is asked for. */
const only =
  (addresses: readonly string[]): LookupFunction =>
  (_hostname, options, answer) => {
    const found = addresses.map((address) => ({ address, family: isIP(address) }))
    const [first] = found
    if (options.all || !first) answer(null, found)
    else answer(null, first.address, first.family)
  }

/** The first KiB of an answer; more than 64 KiB of it are not read, and its end is not waited for then. */
const beginningOf = (response: IncomingMessage): Promise<string> =>
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
    // It closes after its end, too.
    response.on('close', () => {
      if (!response.complete) reject(new Error(BROKE_OFF))
    })
    if (response.closed) reject(response.errored ?? new Error(BROKE_OFF))
  })
