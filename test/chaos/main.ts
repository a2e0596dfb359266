/**
 * `npm run test:chaos [-- FAULT …]`: every fault against a fleet over a PostgreSQL of its own, and a table of what each
 * has cost. CHAOS_SCALE multiplies the loads. Exit code 1 when a promise did not hold.
 */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../db/dev/postgres.ts'
import { migrate } from '../../db/migrate.ts'
import { SMTP_REPORT_TOKEN } from '../support/service.ts'
import { FAULTS } from './faults/all.ts'
import { type Line, runFaults } from './run.ts'
import { openWorld } from './world.ts'

const HEAD = [
  '',
  'fault',
  'load',
  'accepted',
  'lost',
  'repeated',
  'after an answer',
  'over a limit',
  'recovered in',
  '',
]

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`

const rowOf = ({ fault, outcome, held }: Line): string => {
  const { accepted, lost, repeated, after_answer, over, recovered, allowed = 0, note = '' } = outcome
  const time = recovered === null ? 'never' : `${recovered.toFixed(1)} s`
  return row([
    fault.id,
    note === '' ? fault.words : `${fault.words} (${note})`,
    fault.load,
    accepted,
    lost,
    repeated,
    `${after_answer} of ${allowed} allowed`,
    over,
    time,
    held ? 'held' : 'NOT HELD',
  ])
}

async function main(): Promise<void> {
  const wanted = process.argv.slice(2)
  const faults = FAULTS.filter(({ id }) => wanted.length === 0 || wanted.some((name) => id.startsWith(name)))
  const scale = Number(process.env.CHAOS_SCALE ?? 1)
  const scratch = await realpath(await mkdtemp(join(tmpdir(), 'heliograph-chaos-')))
  await chmod(scratch, 0o711)
  // PostgreSQL's own durability settings; few connections, so that they can be used up.
  const postgres = await startPostgres({
    directory: join(scratch, 'postgres'),
    settings: { max_connections: '90' },
  })
  try {
    await migrate(postgres.url)
    const world = await openWorld(postgres.url, { env: { SMTP_REPORT_TOKEN } })
    print(row(HEAD))
    print(row(HEAD.map(() => '---')))
    const lines = await runFaults(world, faults, { scale, tell: (line) => print(rowOf(line)) })
    await world.close()
    const broken = lines.filter(({ held }) => !held)
    print(`\n${lines.length - broken.length} held, ${broken.length} did not`)
    process.exitCode = broken.length === 0 ? 0 : 1
  } finally {
    await postgres.stop()
    await rm(postgres.home, { recursive: true, force: true })
    await rm(scratch, { recursive: true, force: true })
  }
}

await main()
