/** The API as a process of its own, as production runs it, on a free port. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { type Call, caller } from './service.ts'
import { type OurProcess, startProcess } from './worker.ts'

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Starts `api/main.ts` on a database and waits until it answers. */
export async function startApi(t: Test, url: string): Promise<OurProcess & { base: string; call: Call }> {
  const port = await freePort()
  const api = await startProcess(t, 'api/main.ts', { DATABASE_URL: url, PORT: String(port) })
  const base = `http://127.0.0.1:${port}`
  return { ...api, base, call: caller(base) }
}
