/**
 * A customer's webhook server that is killed and restarted. Its record by event survives. For each request it
 * records whether it responded, so that a repeat can be distinguished from a loss. It lists anything that the
 * API's description doesn't cover.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { assertWebhook } from '../support/described.ts'

/** One copy of a webhook. `answered` is true if the response was sent before the server was killed. */
type Copy = { body: string; answered: boolean }

export type Customer = {
  url: string
  /** Received requests, by webhook-id. */
  copies: ReadonlyMap<string, readonly Copy[]>
  /** Received requests that aren't described, by webhook-id, with the reason. */
  undescribed: ReadonlyMap<string, string>
  /** Drops every request, and stays down for some milliseconds. */
  kill(away: number): Promise<void>
  close(): Promise<void>
}

/** Starts one on a free port of 127.0.0.1. */
export async function startCustomer(): Promise<Customer> {
  const copies = new Map<string, Copy[]>()
  const undescribed = new Map<string, string>()
  let server: Server
  let port = 0
  const listen = async (): Promise<void> => {
    server = createServer(async (request, response) => {
      const id = String(request.headers['webhook-id'])
      const body = await buffer(request).catch(() => null)
      if (body === null) return
      const copy = { body: body.toString(), answered: false }
      copies.set(id, [...(copies.get(id) ?? []), copy])
      try {
        assertWebhook(JSON.parse(copy.body))
      } catch (error) {
        undescribed.set(id, String(error))
      }
      response.once('finish', () => {
        copy.answered = true
      })
      response.writeHead(204).end()
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  const end = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  await listen()
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    copies,
    undescribed,
    async kill(away) {
      await end()
      await new Promise((resolve) => setTimeout(resolve, away))
      await listen()
    },
    close: end,
  }
}
