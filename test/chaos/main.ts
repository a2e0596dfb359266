/**
 * Runs `npm run test:chaos [-- FAULT …]`: every fault, or the given ones, against a fleet with its own
 * PostgreSQL. Prints a table of their costs. A complete run writes it to RESULTS.md. CHAOS_SCALE multiplies
 * the loads. Exits 1 if a guarantee was broken.
 */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from 'commander'
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

/** Runs one fault with a separate database. Null if this machine lacks a requirement. */
async function run(server: TestServer, fault: Fault, options: { scale: number; stop: AbortSignal }) {
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

/** A name is an id, the part before its slash, or the letter of a group. A1 doesn't match A10. */
const isNamed = (id: string, name: string): boolean =>
  id === name || id.startsWith(`${name}/`) || (name.length === 1 && id.startsWith(name))

/** PostgreSQL's defaults, with so few connections that a fault can exhaust them. */
const SETTINGS = { max_connections: '90' }
/** How many patient faults run concurrently, next to the active one. */
const PATIENT_LANES = 2

/** Runs faults one after another on a database server. */
async function runLane(
  directory: string,
  next: () => Fault | undefined,
  options: { scale: number; stop: AbortSignal },
): Promise<{ lines: Line[]; version: string }> {
  const postgres = await startPostgres({ directory, settings: SETTINGS })
  const lines: Line[] = []
  try {
    const server = { url: postgres.url, prefix: 'chaos' }
    await createTemplate(server, migrate)
    for (let fault = next(); fault && !options.stop.aborted; fault = next()) {
      const line = await run(server, fault, options)
      if (line) lines.push(line)
    }
    return { lines, version: await versionOf(postgres.url) }
  } finally {
    await postgres.stop()
    await rm(postgres.home, { recursive: true, force: true })
  }
}

async function main(): Promise<void> {
  const ids = FAULTS.map(({ id }) => id).join(', ')
  const command = program
    .name('npm run test:chaos --')
    .description('Checks delivery under all faults, or only the given ones. CHAOS_SCALE multiplies the load.')
    .argument('[fault...]', `IDs, parts before the slash of an ID, or letters of groups, from: ${ids}`)
    .parse()
  const wanted = command.args
  const faults = FAULTS.filter(({ id }) => wanted.length === 0 || wanted.some((name) => isNamed(id, name)))
  if (faults.length === 0) command.error(`There is no fault ${wanted.join(' or ')}. The faults are ${ids}.`)
  const scale = Number(process.env.CHAOS_SCALE ?? 1)
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const scratch = await realpath(await mkdtemp(join(tmpdir(), 'heliograph-chaos-')))
  await chmod(scratch, 0o711)
  const busy = faults.filter(({ patient }) => !patient)
  const patient = faults.filter((fault) => fault.patient)
  const options = { scale, stop: stopping.signal }
  for (const line of HEAD) print(line)
  try {
    const lanes = [busy, ...Array.from({ length: PATIENT_LANES }, () => patient)].map((queue, lane) =>
      queue.length === 0 ? null : runLane(join(scratch, `postgres-${lane}`), () => queue.shift(), options),
    )
    const done = (await Promise.all(lanes)).filter((lane) => lane !== null)
    const order = new Map(FAULTS.map(({ id }, at) => [id, at]))
    const placeOf = ({ fault }: Line): number => order.get(fault.id) ?? 0
    const lines = done.flatMap((lane) => lane.lines).sort((one, other) => placeOf(one) - placeOf(other))
    const broken = lines.filter(({ held }) => !held)
    print(`\n${lines.length - broken.length} held, ${broken.length} did not`)
    if (wanted.length === 0 && scale === 1 && !stopping.signal.aborted)
      await writeResults(lines, done[0]?.version ?? '')
    process.exitCode = broken.length === 0 ? 0 : 1
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

await main()
