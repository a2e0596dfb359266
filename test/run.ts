/**
 * Runs `npm test`: Biome, tsc, then all tests, with its own PostgreSQL or the server in DATABASE_URL.
 * `--quick` leaves out files that open a browser, kill processes or load much data. Other arguments are
 * passed to tap: `npm test -- test/api/emails.test.ts`. The last line is `N passed, N failed`, and the exit
 * code agrees with it. No process, file or database remains, however the run ends.
 */
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startPostgres } from '../db/dev/postgres.ts'
import { stopServer } from '../db/dev/process.ts'
import { createTemplate, dropDatabases, hurryLogins, socketOf, type TestServer } from './support/database.ts'
import { givenServerFault } from './support/given-server.ts'
import { keepTimes, quickFiles, testFiles } from './support/order.ts'
import { MODULES, type Printer, program, ROOT, testEnvironment } from './support/program.ts'
import { quickParent, RUN_SETTINGS } from './support/quick-server.ts'
import { runFiles } from './support/runners.ts'
import { type Counts, tapReport } from './support/tap-report.ts'
import { startUsage } from './support/usage.ts'

const QUICK = '--quick'
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
// Warnings are for editors.
const LINT = ['biome', 'check', '--diagnostic-level=error', '--max-diagnostics=100', '.']
// One checker instead of four, which would check shared types again. Tests run at the same time.
const TYPES = ['tsc', '--checkers', '1']
/** State that the steps of a run share. `cleanups` run in reverse order at the end. */
type Run = {
  /** A directory for this run. */
  scratch: string
  /** A directory on a fast file system. */
  quick: string
  prefix: string
  stop: AbortSignal
  cleanups: (() => Promise<unknown>)[]
}

const print: Printer = (text) => void process.stdout.write(`${text}\n`)
const reasonOf = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}

/** Runs a checker, which only prints if it fails. @returns the number of failures to count. */
async function check(run: Run, argv: string[]): Promise<number> {
  const lines: string[] = []
  if ((await program(run, argv, (line) => lines.push(line))) === 0) return 0
  print([...lines, `failed: ${argv.join(' ')}`, ''].join('\n'))
  return 1
}

/** Builds tap's Test class for the plugins in .taprc, in node_modules, unless it is up to date. */
async function buildTap(run: Run): Promise<void> {
  const built = await readFile(join(MODULES, '@tapjs/test/test-built/dist/esm/index.js'), 'utf8').catch(
    () => '',
  )
  const core = await realpath(join(MODULES, '@tapjs/core'))
  // A copied checkout may contain a link to the tap of the original.
  const linked = await realpath(join(ROOT, '.tap/plugins/node_modules/@tapjs/core')).catch(() => core)
  if (built !== '' && !built.includes('@tapjs/typescript') && linked === core) return
  if (await check(run, ['tap', 'build'])) throw new Error('tap build failed')
}

/** Returns why the tests can't use the server in DATABASE_URL, or null. */
async function givenFault(): Promise<string | null> {
  const given = process.env.DATABASE_URL
  return given ? givenServerFault(given) : null
}

/** Opens the migrated server for the tests: the one in DATABASE_URL, or our own. */
async function openServer(run: Run): Promise<TestServer> {
  const given = process.env.DATABASE_URL
  const url = given || (await ownServer(run))
  const server = { url, prefix: run.prefix, ...(given ? {} : await socketOf(url)) }
  if (given) run.cleanups.push(() => dropDatabases(server))
  // Loaded here, so that an error in the code under test is reported like any other.
  const { migrate } = await import('../db/migrate.ts')
  await createTemplate(server, migrate)
  return server
}

async function ownServer({ quick, cleanups }: Run): Promise<string> {
  const directory = join(quick, 'postgres')
  const postgres = await startPostgres({ directory, settings: RUN_SETTINGS })
  cleanups.push(async () => {
    await postgres.stop()
    if (postgres.home !== directory) await rm(postgres.home, { recursive: true, force: true })
  })
  await hurryLogins(postgres.url)
  return postgres.url
}

/** Stops servers that tests started in separate sessions and couldn't stop, because they were killed. */
async function stopStrays(directory: string): Promise<void> {
  const files = await readdir(directory, { recursive: true })
  const servers = files.filter((file) => file.endsWith('/postmaster.pid'))
  for (const file of servers) await stopServer(dirname(join(directory, file)))
}

async function runTests(run: Run, server: TestServer): Promise<Counts> {
  const report = tapReport(print)
  const env = { TMPDIR: run.scratch, ...testEnvironment(server, join(run.quick, 'compile-cache')) }
  const wanted = process.argv.slice(2)
  const isQuick = wanted.length === 1 && wanted[0] === QUICK
  if (wanted.length > 0 && !isQuick) {
    const stream = report.stream()
    stream.end(await program(run, ['tap', '--reporter=tap', ...wanted], stream.line, print, env))
    return report.finish()
  }
  const usage = startUsage()
  const all = await testFiles(ROOT)
  await runFiles(isQuick ? await quickFiles(ROOT, all) : all, {
    taken: join(run.scratch, 'taken'),
    stream: report.stream,
    start: ({ argv, line, stop, ...own }) =>
      program({ ...run, stop: AbortSignal.any([run.stop, stop]) }, ['node', ...argv], line, print, {
        ...env,
        ...own.env,
      }),
  })
  const counts = report.finish()
  print(usage(report.times))
  if (!isQuick && !run.stop.aborted) await keepTimes(ROOT, report.times)
  return counts
}

/** Runs all steps. An error of a step counts as one failure. */
async function runAll(run: Run): Promise<Counts> {
  const lack = await givenFault().catch((error) => `the server of DATABASE_URL: ${reasonOf(error)}`)
  if (lack !== null) {
    print(`cannot run the tests: ${lack}`)
    return { passed: 0, failed: 1 }
  }
  const checks = [check(run, LINT)]
  const faults = async (failed: number) => (await Promise.all(checks)).reduce((all, one) => all + one, failed)
  try {
    const [, server] = await settled([buildTap(run), openServer(run)])
    // After `tap build`, because tsc reads its output.
    checks.push(check(run, TYPES))
    const tests = await runTests(run, server)
    return { passed: tests.passed, failed: await faults(tests.failed) }
  } catch (error) {
    print(`cannot run the tests: ${reasonOf(error)}`)
    return { passed: 0, failed: await faults(1) }
  }
}

/** Like Promise.all, but waits for all work before it throws. */
async function settled<T extends unknown[]>(work: [...{ [K in keyof T]: Promise<T[K]> }]): Promise<T> {
  await Promise.allSettled(work)
  return (await Promise.all(work)) as T
}

/**
 * Creates a directory for this run. At the end it is deleted and servers in it are stopped. PostgreSQL is
 * another user if the run is by root, and can enter it.
 */
async function ownDirectory(parent: string, cleanups: Run['cleanups']): Promise<string> {
  const directory = await realpath(await mkdtemp(join(parent, 'heliograph-test-')))
  cleanups.push(
    () => rm(directory, { recursive: true, force: true }),
    () => stopStrays(directory),
  )
  await chmod(directory, 0o711)
  return directory
}

async function main(): Promise<void> {
  const stopping = new AbortController()
  for (const signal of SIGNALS) process.on(signal, () => stopping.abort(signal))
  const prefix = `heliograph_test_${randomBytes(4).toString('hex')}`
  const cleanups: Run['cleanups'] = []
  const [scratch, quick] = [
    await ownDirectory(tmpdir(), cleanups),
    await ownDirectory(await quickParent(), cleanups),
  ]
  const run: Run = { scratch, quick, prefix, stop: stopping.signal, cleanups }
  const { passed, failed } = await runAll(run)
  let faults = 0
  for (const cleanup of run.cleanups.reverse()) {
    await cleanup().catch((error) => {
      print(`cannot clean up: ${reasonOf(error)}`)
      faults++
    })
  }
  const signal = SIGNALS.find((name) => name === stopping.signal.reason)
  if (signal) print(`stopped by ${signal}`)
  const all = failed + faults || (signal ? 1 : 0)
  process.exitCode = signal ? 128 + constants.signals[signal] : Math.min(all, 1)
  print(`${passed} passed, ${all} failed`)
}

await main()
