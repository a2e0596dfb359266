/**
 * A TCP proxy for PostgreSQL. It counts the round trips (Query and Sync of the frontend protocol),
 * collects the server's notices, and can cut connections. It doesn't change the data.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

const HEADER = 5
const QUERY = 'Q'.charCodeAt(0)
const SYNC = 'S'.charCodeAt(0)
const PARSE = 'P'.charCodeAt(0)
const BIND = 'B'.charCodeAt(0)
const NOTICE = 'N'.charCodeAt(0)

type Reader = { onTrip: () => void; onText: (text: string) => void; onBind: (name: string) => void }

/** Returns the text of the statement in a message, if any. In a Parse, the statement's name comes first. */
function textOf(type: number | undefined, body: Buffer): string | null {
  if (type !== PARSE && type !== QUERY) return null
  const begin = type === PARSE ? body.indexOf(0) + 1 : 0
  return body.toString('utf8', begin, body.indexOf(0, begin))
}

/**
 * Returns the name of the prepared statement in a Bind, or '' for an unnamed one. The portal's name comes
 * first.
 */
function boundIn(body: Buffer): string {
  const begin = body.indexOf(0) + 1
  return body.toString('utf8', begin, body.indexOf(0, begin))
}

/** Splits one side of a connection into messages. @param started is true if the first one also has a type. */
function framed(
  started: boolean,
  onMessage: (type: number | undefined, body: Buffer) => void,
): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const header = started ? HEADER : HEADER - 1
      if (rest.length < header) return
      const length = rest.readInt32BE(header - 4) + (started ? 1 : 0)
      if (rest.length < length) return
      if (started) onMessage(rest[0], rest.subarray(HEADER, length))
      started = true
      rest = rest.subarray(length)
    }
  }
}

/** Reads one connection's frontend messages and reports each round trip, and each text. */
const messageReader = ({ onTrip, onText, onBind }: Reader): ((chunk: Buffer) => void) =>
  // Only the startup message has no type byte.
  framed(false, (type, body) => {
    if (type === QUERY || type === SYNC) onTrip()
    const text = textOf(type, body)
    if (text !== null) onText(text)
    if (type === BIND) onBind(boundIn(body))
  })

/** The message (field M) of a notice: fields have a letter each, and end with a zero byte. */
const noticeIn = (body: Buffer): string =>
  body
    .toString('utf8')
    .split('\0')
    .find((field) => field.startsWith('M'))
    ?.slice(1) ?? ''

type DatabaseProxy = {
  url: string
  /** Returns the number of round trips during `work`. A statement joined with BEGIN or COMMIT is one. */
  during(work: () => Promise<unknown>): Promise<number>
  /** Returns how often each prepared statement ran during `work`, by name. */
  preparedDuring(work: () => Promise<unknown>): Promise<ReadonlyMap<string, number>>
  /**
   * Returns the texts of the statements parsed during `work`. A connection parses a prepared statement once.
   */
  textsDuring(work: () => Promise<unknown>): Promise<string[]>
  /** Returns the server's notices (NOTICE) during `work`. */
  noticesDuring(work: () => Promise<unknown>): Promise<string[]>
  /** Returns the current and the total number of connections. */
  connections(): { open: number; opened: number }
  /** Breaks every connection and accepts no new ones until `restore`. */
  cut(): void
  restore(): void
  /** Stops all data on open connections without closing them. */
  silence(): void
}

export async function startDatabaseProxy(t: Pick<Test, 'teardown'>, url: string): Promise<DatabaseProxy> {
  const target = new URL(url)
  let count = 0
  const texts: string[] = []
  const bound: string[] = []
  const notices: string[] = []
  const open = new Set<Socket>()
  let away = false
  let opened = 0
  const proxy = createServer((client) => {
    if (away) return void client.destroy()
    open.add(client)
    opened += 1
    client.once('close', () => open.delete(client))
    const server = connect(Number(target.port || 5432), target.hostname)
    client.on(
      'data',
      messageReader({
        onTrip: () => {
          count += 1
        },
        onText: (text) => void texts.push(text),
        onBind: (name) => void bound.push(name),
      }),
    )
    server.on(
      'data',
      framed(true, (type, body) => {
        if (type === NOTICE) notices.push(noticeIn(body))
      }),
    )
    client.pipe(server).pipe(client)
    client.on('error', () => server.destroy())
    client.on('close', () => server.destroy())
    server.on('error', () => client.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    away = true
    for (const client of open) client.destroy()
  }
  t.teardown(() => {
    proxy.close()
    cut()
  })
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String((proxy.address() as AddressInfo).port)
  return {
    url: through.href,
    cut,
    silence: () => {
      for (const client of open) client.unpipe().removeAllListeners('data').resume()
    },
    restore: () => {
      away = false
    },
    connections: () => ({ open: open.size, opened }),
    async preparedDuring(work) {
      const before = bound.length
      await work()
      const ran = Map.groupBy(bound.slice(before), (name) => name)
      return new Map([...ran].map(([name, times]) => [name, times.length]))
    },
    async textsDuring(work) {
      const before = texts.length
      await work()
      return texts.slice(before)
    },
    async noticesDuring(work) {
      const before = notices.length
      await work()
      return notices.slice(before)
    },
    async during(work) {
      const before = count
      await work()
      return count - before
    },
  }
}
