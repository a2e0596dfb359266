/**
 * `npm run test:chaos [-- FAULT …]`: every fault against a fleet over a PostgreSQL of its own, and a table of what each
 * has cost, which a whole run leaves in RESULTS.md. CHAOS_SCALE multiplies the loads. Exit code 1 when a promise did
 * not hold.
 */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { startPostgres } from '../../db/dev/postgres.ts'
import { migrate } from '../../db/migrate.ts'
import { cloneDatabase, createTemplate, type TestServer } from '../support/database.ts'
import type { Fault } from './fault.ts'
import { FAULTS } from './faults/all.ts'
import { HEAD, rowOf, writeResults } from './results.ts'
import { type Line, runAlone } from './run.ts'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

async function versionOf(url: string): Promise<string> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ server_version: string }>('show server_version')
  await client.end()
  return rows[0]?.server_version ?? ''
}

/** Runs one of them over a database of its own; null when this machine lacks what it takes. */
async function run(
  server: TestServer,
  fault: Fault,
  options: { scale: number; stop: AbortSignal },
): Promise<Line | null> {
  const missing = await fault.missing?.()
  if (missing) {
    print(`${fault.id} is left out: ${missing}`)
    return null
  }
  const { url, drop } = await cloneDatabase(server)
  try {
    const line = await runAlone(url, fault, options)
    print(rowOf(line))
    return line
  } finally {
    await drop()
  }
}

async function main(): Promise<void> {
  const wanted = process.argv.slice(2)
  const faults = FAULTS.filter(({ id }) => wanted.length === 0 || wanted.some((name) => id.startsWith(name)))
  const scale = Number(process.env.CHAOS_SCALE ?? 1)
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const { signal: stop } = stopping
  const scratch = await realpath(await mkdtemp(join(tmpdir(), 'heliograph-chaos-')))
  await chmod(scratch, 0o711)
  // PostgreSQL's own durability settings; few connections, so that they can be used up.
  const postgres = await startPostgres({
    directory: join(scratch, 'postgres'),
    settings: { max_connections: '90' },
  })
  try {
    const server = { url: postgres.url, prefix: 'chaos' }
    await createTemplate(server, migrate)
    for (const line of HEAD) print(line)
    const lines: Line[] = []
    for (const fault of faults) {
      const line = stop.aborted ? null : await run(server, fault, { scale, stop })
      if (line) lines.push(line)
    }
    const broken = lines.filter(({ held }) => !held)
    print(`\n${lines.length - broken.length} held, ${broken.length} did not`)
    if (wanted.length === 0 && scale === 1 && !stop.aborted)
      await writeResults(lines, await versionOf(postgres.url))
    process.exitCode = broken.length === 0 ? 0 : 1
  } finally {
    await postgres.stop()
    await rm(postgres.home, { recursive: true, force: true })
    await rm(scratch, { recursive: true, force: true })
  }
}

await main()
