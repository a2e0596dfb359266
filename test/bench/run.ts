/**
 * Runs `npm run bench`: measures one row after another, compares each with its goal, prints a table and
 * writes it to RESULTS.md. Only ratios within one run are comparable. It asserts nothing. Rows can be chosen:
 * `npm run bench -- 1 4`, and `--minutes N` sets how long row 14 watches memory (default 3). Row 12 keeps its
 * database of ten million emails (18 GB) between runs in `--store DIR` (default /var/tmp/heliograph-bench);
 * `--drop` deletes it. Row 25 starts Debian's PostgreSQL, if it is installed. `--server URL` measures on a
 * running server, and writes nothing.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { InvalidArgumentError, program } from 'commander'
import { acceptFigures, measureAccepts, measureQuiet } from './accepts.ts'
import { measureBareLoop } from './bare-loop.ts'
import { measureBodies } from './bodies.ts'
import { measureBeside, measureNeedle, measureWalk } from './broadcasts.ts'
import { measureUpserts, upsertFigure } from './contacts.ts'
import { onDebian } from './debian.ts'
import {
  cpuFigure,
  isMissing,
  measureLatency,
  measureScaling,
  measureThrough,
  measureWhatsapp,
  postfixFigures,
} from './deliveries.ts'
import { measureDistance } from './distance.ts'
import type { Figure } from './figures.ts'
import { measureFiles } from './files.ts'
import { measureIdle } from './idle.ts'
import { measureReports } from './reports.ts'
import { type Kept, type Place, type Rig, startRig } from './rig.ts'
import { dropTenMillion, STORE } from './ten-million.ts'
import { measureHanging, measureNotifying, measureWebhooks } from './webhooks.ts'
import { type Baseline, measureBacklog, measureBytes, measureFull, measureMemory } from './weight.ts'

const RESULTS = join(import.meta.dirname, 'RESULTS.md')
const ROWS = Array.from({ length: 26 }, (_, index) => index + 1)

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Runs some work in a separate database. */
async function inPlace<T>(rig: Rig, work: (place: Place) => Promise<T>): Promise<T> {
  const place = await rig.place()
  try {
    return await work(place)
  } finally {
    await place.close()
  }
}

/** Runs `make` at the first call only, for a baseline that several rows share. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** How each row is measured. Rows 1, 2 and 4 share a measurement, as do 5 and 6. */
function measures(
  rig: Rig,
  { minutes, kept }: { minutes: number; kept: Kept },
): Record<number, () => Promise<Figure[]>> {
  const accepts = once(() => inPlace(rig, measureAccepts))
  const through = once(() => inPlace(rig, measureThrough))
  const upserts = once(() => inPlace(rig, measureUpserts))
  const baseline = async (): Promise<Baseline> => ({ accepts: await accepts(), through: await through() })
  const acceptRow = (row: string) => async () =>
    acceptFigures(await accepts()).filter((figure) => figure.row === row)
  return {
    1: acceptRow('1'),
    2: acceptRow('2'),
    3: () => measureQuiet(rig),
    4: acceptRow('4'),
    5: async () => postfixFigures(await through()),
    6: async () => cpuFigure(await through()),
    7: () => measureScaling(rig),
    8: () => measureLatency(rig),
    9: () => measureWhatsapp(rig),
    10: async () => measureReports(rig, (await accepts()).many),
    11: async () => upsertFigure(await upserts()),
    12: async () => measureFull(rig, { accepts: await accepts(), upserts: await upserts() }),
    13: () => measureBacklog(rig),
    14: async () => measureMemory(rig, await baseline(), minutes),
    15: () => measureBytes(rig),
    16: () => measureWalk(rig),
    17: () => measureBeside(rig),
    18: () => measureNeedle(rig),
    19: () => measureNotifying(rig),
    20: () => measureHanging(rig),
    21: () => measureWebhooks(rig),
    22: () => measureFiles(rig),
    23: () => measureBodies(rig),
    24: () => measureDistance(rig),
    25: () => (kept.url === undefined ? onDebian(kept, measureBareLoop) : measureBareLoop(rig)),
    26: () => measureIdle(rig),
  }
}

const short = (value: number): string =>
  Number.isFinite(value) ? Number(value.toPrecision(value >= 1_000 ? 4 : 3)).toLocaleString('en') : '–'

const GROWING =
  'the heap finds its size in the first minutes (chaos A9 watches what is left after whole collections)'
/**
 * Explains each row that misses its goal, from profiles of 2026-11-30 (rows 4, 11, 13 and 14: 2026-11-23) on two cores,
 * with client and sink on the same machine.
 */
const MADE_OF: Record<string, string> = {
  1: 'web (garbage collection and sockets 14 % each, Node 8 %, pg and slonik 8 %), then PostgreSQL and the client',
  3: 'garbage collection and both CPUs. With synchronous_commit off, p99 is 13 to 18 % lower',
  4: 'per batch, PostgreSQL needs 9.6 ms, web 7.1 and the client 1.3',
  '5a': 'as row 6. Postfix signs nothing',
  6: 'RSA-2048 16 %, threads of V8 13 %. On the main thread: Node 17 %, garbage collection 10 %, sockets, text parts and nodemailer 8 % each',
  7: 'as row 6. The workers, the sink and PostgreSQL share two CPUs',
  '8a': 'a NOTIFY and three round trips between the 201 and the email',
  '8b': 'as row 8a',
  9: 'the worker: HTTP client 20 %, garbage collection and sockets 10 % each, statements 8 %',
  10: 'web (sockets 12 %, RSA 10 %, garbage collection 7 %), then PostgreSQL, the worker (sockets 12 %, garbage collection 10 %) and the client',
  11: 'two processes and four commits. CPU time: worker 24 ms (garbage collection, statements and items 16 % each), web 8, PostgreSQL 40',
  '12a': 'each email reads and logs a page of the full table',
  '12b': 'as row 12a',
  '12c': 'its two values are minutes apart, 0.8 to 1.1 in four runs',
  '13d': 'CPU time: worker 0.16 s, PostgreSQL 0.41, mostly to compare 200,000 rows with their jobs',
  '14a': 'code 100 MB, the thread that parses batches 80, and garbage that isn’t collected yet',
  '14b': 'as row 14a',
  '14c': GROWING,
  '14d': GROWING,
  16: 'the machine (5,547 on two AMD EPYC): the process needs 0.06 ms per email, PostgreSQL 0.08',
  '17a': 'as row 3, while both CPUs are busy',
  19: 'storing a webhook needs 0.12 ms of CPU in the worker, and sending it 0.5',
  20: 'the machine: 0.94 to 1.03 in eight runs',
  21: 'the worker: sockets 31 %, HTTP client 15 %, garbage collection 6 %, HMAC 2 %',
  '22c': 'garbage collection, and the work of the relay',
  '24d': 'four round trips of 3.3 ms, and 12 ms of CPU time',
  '25a': 'as row 1',
  '25b': 'as row 1',
  '25c': 'as row 4',
  '25d': 'as row 1',
  '25e': 'as row 1',
  '25f': 'as row 4',
  '26b': 'Node’s program 55 MB, the heap 34 and malloc 19',
}

const limitOf = ({ row, goal, met }: Figure): string =>
  met && goal !== '–' ? '' : (MADE_OF[row] ?? (met ? '' : 'not known yet'))

const line = (figure: Figure): string => {
  const { row, measure, goal, met, ours, reference, unit, ratio } = figure
  const isMet = goal === '–' ? '' : met ? 'met' : '**missed**'
  return `| ${row} | ${measure} | ${goal} | ${short(ratio)} | ${isMet} | ${short(ours)} | ${short(reference)} | ${unit} | ${limitOf(figure)} |`
}

/** Returns a line per row, with its worst value. */
function page(figures: readonly Figure[]): string[] {
  const far = ({ goal, ratio }: Figure): number => (goal.startsWith('≥') ? 1 / ratio : ratio)
  return [...Map.groupBy(figures, ({ row }) => row).values()].flatMap((own) =>
    own
      .toSorted((one, other) => far(other) - far(one))
      .slice(0, 1)
      .map(line),
  )
}

const METHOD = `The client, Heliograph, PostgreSQL and the sink (a server that discards email) share one machine, so only the ratio to
the [reference](README.md) counts. Most values are medians. A target with ≥ is a lower limit, and one with ≤ an upper limit.
Rows 13a and 13b each repeat rows 1 and 5, and show the worse. Row 12 has ten million stored emails, and row 13
has 200,000 waiting jobs. A *distant database* is behind a proxy that adds 1 ms each way. Row 25 uses Debian's
PostgreSQL with its default settings, and the other rows the embedded server.`

const HEAD = [
  '| | measure | target | ratio | | ours | reference | unit | limited by |',
  '|---|---|---|--:|---|--:|--:|---|---|',
]

async function machine(postgres: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(import.meta.dirname, '../../package.json'), 'utf8'))
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 1024 ** 3)
  return `${cpus().length} × ${cpu?.model.trim()}, ${memory} GB, ${process.platform} ${release()}; Node ${process.version}, PostgreSQL ${postgres}, Heliograph ${version}`
}

const positive = (given: string): number => {
  if (/^[1-9]\d*$/.test(given)) return Number(given)
  throw new InvalidArgumentError('It must be an integer, 1 or more.')
}

function toRow(given: string, rows: readonly number[] = []): number[] {
  const row = Number(given)
  if (ROWS.includes(row)) return [...rows, row]
  throw new InvalidArgumentError(`Rows are 1 to ${ROWS.length}.`)
}

function readCommand() {
  const command = program
    .name('npm run bench --')
    .description(
      'Measures the rows of test/bench/RESULTS.md, or only the given ones. A run of all rows without --server also writes the file.',
    )
    .argument('[row...]', 'the numbers of rows', toRow)
    .option('--minutes <n>', 'how long row 14 watches memory', positive, 3)
    .option('--store <dir>', 'where row 12 keeps its database (18 GB) between runs', STORE)
    .option('--drop', 'delete the database of row 12, and measure nothing')
    .option('--quick', 'only check that the bench works, by running everything once and briefly')
    .option('--server <url>', 'measure on a running PostgreSQL server')
    .parse()
  const [chosen = []] = command.processedArgs as [number[] | undefined]
  return { values: command.opts<{ minutes: number; store: string; drop?: true; server?: string }>(), chosen }
}

async function main(): Promise<number> {
  const { values, chosen } = readCommand()
  const { minutes, store, server } = values
  if (values.drop) {
    await dropTenMillion(store)
    return 0
  }
  const kept = { store, say, url: server }
  const rig = await startRig(kept)
  const figures: Figure[] = []
  const failures: string[] = []
  try {
    const rows = measures(rig, { minutes, kept })
    for (const row of chosen.length > 0 ? chosen : ROWS) {
      const started = performance.now()
      try {
        const found = await rows[row]?.()
        figures.push(...(found ?? []))
        for (const figure of found ?? []) say(line(figure))
      } catch (error) {
        const words = error instanceof Error ? error.message : String(error)
        failures.push(`row ${row} could not be measured: ${words}`)
        say(`row ${row}: ${isMissing(error) ? words : error instanceof Error ? error.stack : words}`)
      }
      say(`row ${row} took ${Math.round((performance.now() - started) / 1_000)} s`)
    }
    const date = new Date().toISOString().slice(0, 16).replace('T', ' ')
    const about = `${await machine(rig.version)}; ${date} UTC`
    const text = [about, '', ...HEAD, ...page(figures), '', ...failures].join('\n')
    say(`\n${text}`)
    if (chosen.length === 0 && server === undefined) {
      await writeFile(RESULTS, `# Benchmark results\n\n${METHOD}\n\n${text.trimEnd()}\n`)
    }
  } finally {
    await rig.stop()
  }
  return failures.length === 0 ? 0 : 1
}

process.exitCode = await main()
