/**
 * Runs the CLI's `main` in a persistent process, which saves a start of Node per call. It accepts one call at
 * a time from its parent, returns the call's output, and ends with its parent. Calls with the same database
 * share a pool, because the catalog is read again for each new connection.
 */
import { Readable } from 'node:stream'
import type { Open } from '../../db/admin/context.ts'
import { main } from '../../db/admin/main.ts'
import { openDatabase } from '../../db/postgres/pool.ts'

export type HostCall = {
  args: readonly string[]
  env: Record<string, string | undefined>
  input: string | Buffer
}
export type HostAnswer = { code: number; stdout: string; stderr: string }

/**
 * Collects the output to a stream instead of writing it.
 * @returns a function that reads it, and one that stops.
 */
function keep(stream: NodeJS.WriteStream) {
  const write = stream.write
  let text = ''
  stream.write = (chunk: string | Uint8Array) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    return true
  }
  return () => {
    stream.write = write
    return text
  }
}

let kept: { url: string; database: Awaited<ReturnType<Open>> } | undefined

const open: Open = async (url, options) => {
  if (kept?.url !== url) {
    await kept?.database.end()
    kept = undefined
    kept = { url, database: await openDatabase(url, options) }
  }
  return { ...kept.database, end: async () => {} }
}

process.on('disconnect', () => process.exit())
process.on('message', async ({ args, env, input }: HostCall) => {
  process.env = { ...env }
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true })
  const [out, err] = [keep(process.stdout), keep(process.stderr)]
  const code = await main(args, open)
  const answer: HostAnswer = { code, stdout: out(), stderr: err() }
  process.send?.(answer)
})
