/**
 * How the SDK asks over HTTP: through our own requests, within their bounds, in place of its own client.
 * Promises: a request ends within its time, connection, answer and all; an answer that cannot be read bears its status
 * all the same, since SES has decided by then. Must not know what is asked.
 */
import { ask, keptConnections } from '../../../db/process/limited-response.ts'

export type SesTimeouts = {
  connect_ms: number
  /** Bounds one request from its first byte to SES's last. */
  answer_ms: number
  /** Bounds a look-up of credentials. */
  credentials_ms: number
}

type Signed = {
  protocol: string
  hostname: string
  port?: number
  path: string
  query?: Record<string, string | string[] | null>
  method: string
  headers: Record<string, string>
  body?: string | Uint8Array
}

type Limits = { abortSignal?: AbortSignal; requestTimeout?: number }

/** Far more than any answer of SES's. */
const MAX_ANSWER_BYTES = 256 * 1024

/** The SDK's request handler. @param endpoint another server than AWS's own. */
export function createHandler(
  { endpoint = 'https://', max_connections }: { endpoint?: string | undefined; max_connections: number },
  { connect_ms, answer_ms }: Omit<SesTimeouts, 'credentials_ms'>,
) {
  const agent = keptConnections(endpoint, max_connections)
  return {
    metadata: { handlerProtocol: 'http/1.1' },
    async handle(request: Signed, { abortSignal, requestTimeout = answer_ms }: Limits = {}) {
      const { method, headers, body } = request
      const bounds = { bytes: MAX_ANSWER_BYTES, ms: requestTimeout, connect_ms, signal: abortSignal }
      const answer = await ask(urlOf(request), { method, headers, body, agent }, bounds)
      const { status: statusCode } = answer
      if (answer.body === null)
        throw Object.assign(new Error(answer.fault), {
          name: 'AnswerUnread',
          $metadata: { httpStatusCode: statusCode },
        })
      const pairs = Object.entries(answer.headers).map(([name, value = '']) => [name, String(value)])
      return { response: { statusCode, headers: Object.fromEntries(pairs), body: answer.body } }
    },
    destroy: () => agent.destroy(),
  }
}

function urlOf({ protocol, hostname, port, path, query = {} }: Signed): URL {
  const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`)
  for (const [name, value] of Object.entries(query))
    for (const each of [value ?? ''].flat()) url.searchParams.append(name, each)
  return url
}
