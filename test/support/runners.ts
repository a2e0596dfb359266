/**
 * Runs test files in a few concurrent processes (run-files.ts), because loading a thousand modules is as slow
 * as most files. Each process claims the next file, so that all are busy until the end. Spare processes claim
 * from the end of the list while the cores are partly idle. The first files mostly wait, and the last ones
 * compute. Each file runs once. A process that dies or hangs counts as one failure, and the others run the
 * rest. A run without files fails.
 */
import { mkdir } from 'node:fs/promises'
import type { TapStream } from './tap-report.ts'

/** The time limit of a file in seconds, as in .taprc. */
export const TIMEOUT = 900
/** Enough to keep two cores busy. Six need a third more CPU time for the same files. */
const RUNNERS = 3
const SPARES = 2
/** More memory for young objects. Test processes are too short-lived for many collections. */
const FLAGS = ['--max-semi-space-size=32', '--min-semi-space-size=16']

type Runner = {
  argv: string[]
  env: Record<string, string>
  /** Receives each line of its output. */
  line(text: string): void
  stop: AbortSignal
}

/** How to start processes, and where their output goes. */
type Runners = {
  /** A directory for the marks of claimed files. It must not exist yet. */
  taken: string
  /** Runs Node with these arguments until it ends or is stopped. @returns its exit code. */
  start(runner: Runner): Promise<number>
  /** Returns a parser for the TAP of another process. */
  stream(): TapStream
  /** The seconds without output after which a process counts as stuck. */
  silence?: number
  /** The number of processes. */
  most?: number
  /** The number of further processes that use idle cores. */
  spares?: number
}

/** Runs the files. @param files their paths from the repository's root. @throws Error without any. */
export async function runFiles(
  files: readonly string[],
  // A stuck process can't enforce the time limit of its file.
  { taken, start, stream, silence = TIMEOUT + 30, most = RUNNERS, spares = SPARES }: Runners,
): Promise<void> {
  if (files.length === 0) throw new Error('there is no test file')
  await mkdir(taken)
  const env = { TEST_FILES: files.join(','), TEST_TAKEN: taken, TAP_TIMEOUT: String(TIMEOUT) }
  const argv = [...FLAGS, 'test/support/run-files.ts']
  const run = async (isSpare: boolean): Promise<void> => {
    const tap = stream()
    const stuck = new AbortController()
    const timer = setTimeout(() => stuck.abort(), silence * 1_000)
    const line = (text: string) => {
      timer.refresh()
      tap.line(text)
    }
    const code = await start({
      argv,
      env: isSpare ? { ...env, TEST_SPARE: '1' } : env,
      line,
      stop: stuck.signal,
    })
    clearTimeout(timer)
    tap.end(code)
  }
  const length = Math.min(most + spares, files.length)
  await Promise.all(Array.from({ length }, (_, nth) => run(nth >= most)))
}
