/**
 * A TCP proxy with selectable conditions: calm, frozen, cut, rejecting, delayed, byte by byte. It runs
 * between the service and its database or relay. In calm conditions every byte passes in order. It stops with
 * `close`.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { reset } from '../support/reset.ts'

/** `freeze` stops all bytes, `refuse` resets every client, and `drip` forwards one byte at a time. */
type Weather = 'calm' | 'freeze' | 'refuse' | 'drip' | { late: number }

export type Network = {
  port: number
  weather(now: Weather): void
  /** Connects later clients to another port. */
  lead(port: number): void
  /** Returns how many connections were requested so far. */
  asked(): number
  /** Resets every open connection. */
  cut(): void
  close(): Promise<void>
}

type Way = { client: Socket; server: Socket }

/** Forwards chunks in order, each under the current conditions. */
function relay(from: Socket, to: Socket, weatherOf: () => Weather): void {
  let last = Promise.resolve()
  const pass = async (chunk: Buffer): Promise<void> => {
    while (weatherOf() === 'freeze') await sleep(50)
    const weather = weatherOf()
    if (typeof weather === 'object') await sleep(weather.late)
    if (weather !== 'drip') return void to.write(chunk)
    for (const byte of chunk) {
      to.write(Buffer.of(byte))
      await sleep(1)
    }
  }
  from.on('data', (chunk: Buffer) => {
    last = last.then(() => pass(chunk)).catch(() => {})
  })
  from.on('end', () => {
    last = last.then(() => void to.end())
  })
  from.on('error', () => to.destroy())
  from.on('close', () => to.destroy())
}

/** Starts a proxy to a port of this machine. */
export async function startNetwork(target: number): Promise<Network> {
  const ways = new Set<Way>()
  let weather: Weather = 'calm'
  let port = target
  let asked = 0
  const server = createServer({ allowHalfOpen: true }, (client) => {
    asked += 1
    if (weather === 'refuse') return reset(client)
    const way = { client, server: connect({ port, host: '127.0.0.1', allowHalfOpen: true }) }
    ways.add(way)
    relay(way.client, way.server, () => weather)
    relay(way.server, way.client, () => weather)
    client.once('close', () => ways.delete(way))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const cut = (): void => {
    for (const way of ways) {
      reset(way.client)
      way.server.destroy()
    }
  }
  return {
    port: (server.address() as AddressInfo).port,
    weather: (now) => {
      weather = now
    },
    lead: (to) => {
      port = to
    },
    asked: () => asked,
    cut,
    close: async () => {
      weather = 'calm'
      const closed = once(server, 'close')
      server.close()
      cut()
      await closed
    },
  }
}
