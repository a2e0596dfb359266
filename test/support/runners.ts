/**
 * Runs a list of test files in a few processes side by side (run-files.ts), the first ones first: to load a thousand
 * modules costs as much as most files take. Each process takes the next file that none has taken, so that all of them
 * are busy until the end.
 * Promises: each file runs once; a process that dies, or says nothing for longer than a file may take, is one failure,
 * and the others run what is left; a run without files is none. Must not know which files there are.
 */
import { mkdir } from 'node:fs/promises'
import type { TapStream } from './tap-report.ts'

/** Seconds that one file may take, as .taprc has it. */
export const TIMEOUT = 900
/** Three times as many as the two cores of a small machine: these are busy then, and more only get in the way. */
const RUNNERS = 6
/** Young objects get room: a process of tests lives too briefly for many collections to pay. */
const FLAGS = ['--max-semi-space-size=32', '--min-semi-space-size=16']

type Runner = {
  argv: string[]
  env: Record<string, string>
  /** Takes each line of its output. */
  line(text: string): void
  stop: AbortSignal
}

/** How processes are started, and where they leave what. */
type Runners = {
  /** A directory that is not there yet, for the marks of files that a process has taken. */
  taken: string
  /** Runs Node with these arguments until it ends or is stopped. @returns its exit code. */
  start(runner: Runner): Promise<number>
  /** Where the TAP of another process goes. */
  stream(): TapStream
  /** Seconds without a line after which a process is stuck. */
  silence?: number
  /** How many processes there are at most. */
  most?: number
}

/** @param files their paths from the repository's root. @throws Error when there are none. */
export async function runFiles(
  files: readonly string[],
  // A stuck process does not notice the time limit of its file.
  { taken, start, stream, silence = TIMEOUT + 30, most = RUNNERS }: Runners,
): Promise<void> {
  if (files.length === 0) throw new Error('there is no test file')
  await mkdir(taken)
  const env = { TEST_FILES: files.join(','), TEST_TAKEN: taken, TAP_TIMEOUT: String(TIMEOUT) }
  const argv = [...FLAGS, 'test/support/run-files.ts']
  const run = async (): Promise<void> => {
    const tap = stream()
    const stuck = new AbortController()
    const timer = setTimeout(() => stuck.abort(), silence * 1_000)
    const line = (text: string) => {
      timer.refresh()
      tap.line(text)
    }
    const code = await start({ argv, env, line, stop: stuck.signal })
    clearTimeout(timer)
    tap.end(code)
  }
  await Promise.all(Array.from({ length: Math.min(most, files.length) }, run))
}
