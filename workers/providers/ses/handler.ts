/**
 * Makes the SDK use our own bounded HTTP requests. A request, with connection and response, ends within its time
 * limit. An unreadable response keeps its status, because SES has decided by then.
 */
import { ask, keepAliveAgent } from '../../../db/process/limited-response.ts'

/** `answer_ms` limits a request from its start to SES's last byte, `credentials_ms` the lookup of credentials. */
export type SesTimeouts = { connect_ms: number; answer_ms: number; credentials_ms: number }

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

/** Far larger than any response of SES. */
const MAX_ANSWER_BYTES = 256 * 1024

/** Creates the SDK's request handler. @param endpoint a server other than AWS's. */
export function createHandler(
  { endpoint = 'https://', max_connections }: { endpoint?: string | undefined; max_connections: number },
  { connect_ms, answer_ms }: Omit<SesTimeouts, 'credentials_ms'>,
) {
  const agent = keepAliveAgent(endpoint, max_connections)
  return {
    metadata: { handlerProtocol: 'http/1.1' },
    async handle(request: Signed, { abortSignal, requestTimeout = answer_ms }: Limits = {}) {
      const { method, headers, body } = request
      const bounds = { bytes: MAX_ANSWER_BYTES, ms: requestTimeout, connect_ms, signal: abortSignal }
      const answer = await ask(toUrl(request), { method, headers, body, agent }, bounds)
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

function toUrl({ protocol, hostname, port, path, query = {} }: Signed): URL {
  const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`)
  for (const [name, value] of Object.entries(query))
    for (const each of [value ?? ''].flat()) url.searchParams.append(name, each)
  return url
}
