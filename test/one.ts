/**
 * Runs `npm run test:one -- FILE… [--grep WORDS] [--watch]`: test files without lint and types, on a database template
 * that is kept for as long as the schema is the same. A file that needs no database starts none. The counts and the
 * exit code are those of `npm test` for these files. The server stops with the run. Its data stay in memory or in the
 * temporary folder, one directory for each checkout.
 */
import { existsSync, watch } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { program as commands } from 'commander'
import type { TestServer } from './support/database.ts'
import { keptName, needsDatabase, openServer } from './support/kept-server.ts'
import { program, ROOT, testEnvironment } from './support/program.ts'
import { quickParent } from './support/quick-server.ts'
import { runFiles } from './support/runners.ts'
import { type Counts, tapReport } from './support/tap-report.ts'

const FOLDERS = ['api', 'workers', 'db', 'test']
/** How long files may still change after the first, in milliseconds: an editor saves several at once. */
const CALM_MS = 100
const LEFT_OUT = /# SKIP filter/

const print = (line: string): void => void process.stdout.write(`${line}\n`)

async function runOnce(
  files: readonly string[],
  {
    grep,
    server,
    parent,
    stop,
  }: { grep?: string; server: TestServer | null; parent: string; stop: AbortSignal },
): Promise<Counts> {
  const scratch = await mkdtemp(join(tmpdir(), 'heliograph-one-run-'))
  // Accessible to others, because PostgreSQL is another user if run by root.
  await chmod(scratch, 0o711)
  const report = tapReport(print)
  const env = {
    ...testEnvironment(server, join(parent, `${keptName}-code`)),
    TMPDIR: scratch,
    // The first level are the files.
    ...(grep && { TAP_GREP: `/./\n${grep}` }),
  }
  try {
    await runFiles(files, {
      taken: join(scratch, 'taken'),
      stream: report.stream,
      start: ({ argv, line, stop: stuck, ...own }) =>
        program(
          { stop: AbortSignal.any([stop, stuck]) },
          ['node', ...argv],
          (text) => LEFT_OUT.test(text) || line(text),
          print,
          { ...env, ...own.env },
        ),
    })
    return report.finish()
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Resolves once a source file has changed and the others are calm. */
async function changed(stop: AbortSignal): Promise<void> {
  const { promise, resolve: done } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  const watchers = FOLDERS.map((folder) =>
    watch(join(ROOT, folder), { recursive: true }, () => {
      clearTimeout(timer)
      timer = setTimeout(done, CALM_MS)
    }),
  )
  stop.addEventListener('abort', () => done())
  await promise
  for (const watcher of watchers) watcher.close()
}

async function main(): Promise<void> {
  const command = commands
    .name('npm run test:one --')
    .description('Runs test files without lint and types, on a database that is kept between runs.')
    .argument('<file...>', 'test files')
    .option('--grep <words>', 'only tests with these words in their titles')
    .option('--watch', 'run again after each change')
    .parse()
  const values = command.opts<{ grep?: string; watch?: true }>()
  const files = command.args.map((file) => relative(ROOT, resolve(file)))
  const missing = files.filter((file) => !existsSync(join(ROOT, file)))
  if (missing.length > 0) command.error(`There is no ${missing.join(', ')}.`)
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())
  const parent = await quickParent()
  const opened = files.some((file) => needsDatabase(join(ROOT, file))) ? await openServer(parent) : null
  try {
    for (;;) {
      const { passed, failed } = await runOnce(files, {
        ...(values.grep && { grep: values.grep }),
        server: opened?.server ?? null,
        parent,
        stop: stopping.signal,
      })
      print(`${passed} passed, ${failed} failed`)
      const isVain = values.grep !== undefined && passed + failed === 0
      if (isVain) print(`no test in these files has “${values.grep}” in its title`)
      process.exitCode = failed === 0 && !isVain ? 0 : 1
      if (!values.watch || stopping.signal.aborted) return
      print('waiting for a change …')
      await changed(stopping.signal)
      if (stopping.signal.aborted) return
    }
  } finally {
    await opened?.close()
  }
}

await main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
