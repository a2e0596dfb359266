/**
 * Counts the statements that reach PostgreSQL: a TCP proxy that reads the frontend protocol as it passes
 * (message types Query and Execute). Promises to change nothing of what it passes on.
 */
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Test } from 'tap'

const HEADER = 5
const QUERY = 'Q'.charCodeAt(0)
const EXECUTE = 'E'.charCodeAt(0)

/** Reads one connection's frontend messages and reports each statement. */
function messageReader(onStatement: () => void): (chunk: Buffer) => void {
  let started = false
  let rest = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      // The startup message alone has no type byte.
      const header = started ? HEADER : HEADER - 1
      if (rest.length < header) return
      const length = rest.readInt32BE(header - 4) + (started ? 1 : 0)
      if (rest.length < length) return
      if (started && (rest[0] === QUERY || rest[0] === EXECUTE)) onStatement()
      started = true
      rest = rest.subarray(length)
    }
  }
}

export type StatementCounter = { url: string; during(work: () => Promise<unknown>): Promise<number> }

/** A way to the database at `url` that counts. */
export async function startStatementCounter(t: Test, url: string): Promise<StatementCounter> {
  const target = new URL(url)
  let count = 0
  const proxy = createServer((client) => {
    const server = connect(Number(target.port || 5432), target.hostname)
    client.on(
      'data',
      messageReader(() => {
        count += 1
      }),
    )
    client.pipe(server).pipe(client)
    client.on('error', () => server.destroy())
    server.on('error', () => client.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void proxy.close())
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String((proxy.address() as AddressInfo).port)
  return {
    url: through.href,
    async during(work) {
      const before = count
      await work()
      return count - before
    },
  }
}
