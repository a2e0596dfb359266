/**
 * A team's webhook server. It stores requests, verifies them with the reference library, and responds as
 * scripted. A request that the API's description doesn't cover fails the test. It closes with the test.
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { Test } from 'tap'
import { assertWebhook } from './described.ts'

/** The body of a webhook. */
type Sent = { type: string; timestamp: string; data: Readonly<Record<string, unknown>> }

export type Received = {
  id: string
  timestamp: string
  signatures: string[]
  headers: IncomingHttpHeaders
  raw: string
  body: Sent
}

export type Receiver = {
  url: string
  received: Received[]
  /** Responds to a request. The default is 204. */
  answer: ((one: Received, response: ServerResponse) => void) | null
}

export async function startReceiver(t: Test): Promise<Receiver> {
  const receiver: Receiver = { url: '', received: [], answer: null }
  const server = createServer(async (request, response) => {
    const raw = (await buffer(request)).toString()
    const { headers } = request
    const one: Received = {
      id: String(headers['webhook-id']),
      timestamp: String(headers['webhook-timestamp']),
      signatures: String(headers['webhook-signature']).split(' '),
      headers,
      raw,
      body: JSON.parse(raw) as Sent,
    }
    try {
      assertWebhook(one.body)
    } catch (error) {
      t.fail(String(error))
    }
    receiver.received.push(one)
    if (receiver.answer) receiver.answer(one, response)
    else response.writeHead(204).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`
  return receiver
}

/** True if the reference library verifies a request with this secret. */
export function isVerified({ raw, headers }: Received, secret: string): boolean {
  try {
    new Webhook(secret).verify(raw, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}
