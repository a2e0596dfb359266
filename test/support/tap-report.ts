/**
 * Reads the TAP of test processes and prints a readable log: a line per passing file, all failures of a
 * failing file, and the skipped tests at the end. The counts are tap's own, plus one failure for each process
 * that didn't finish.
 */

export type Counts = { passed: number; failed: number }

/** The output of one process, whose top-level tests are files. */
export type TapStream = {
  /** Receives the next line of TAP. */
  line(text: string): void
  /** Called when the process has ended. Prints the lines of an unfinished file. @param code its exit code. */
  end(code: number): void
}

type TapReport = {
  stream(): TapStream
  /** Prints the skipped tests, then all failures again. @returns the counts of all streams. */
  finish(): Counts
  /** The duration of each finished file, in milliseconds. */
  times: ReadonlyMap<string, number>
}

const SUMMARY = /^# \{ total: \d+/
const RESULT = /^(not )?ok \d+/
const TIME = /# time=([\d.]+)ms$/
const PASSED = /^( +)ok \d+/
const SKIPPED = /^ *ok \d+ - (.+?) # SKIP (.+)$/
const FILE = /^# Subtest: (\S+\.test\.ts)$/
const SILENT = /^\s*(1\.\.\d+.*)?$/

/** How many lines of failures are printed again at the end. */
const MOST_REPEATED = 200

const figure = (name: string, summary: string) =>
  Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0)

/** Returns the lines of a failing file without its passing tests. */
function failuresOf(lines: readonly string[]): string[] {
  const shown: string[] = []
  for (const line of lines) {
    const indent = PASSED.exec(line)?.[1]
    if (indent !== undefined) {
      if (shown.at(-1)?.startsWith(`${indent}# Subtest: `)) shown.pop()
    } else if (!SILENT.test(line)) {
      shown.push(line)
    }
  }
  return shown
}

/** Where a stream reports its results. */
type Kept = {
  print(text: string): void
  /** Prints a line of a failure. */
  printFailure(text: string): void
  leave(what: string): void
  count(counts: Counts): void
  time(file: string, ms: number): void
}

function tapStream({ print, printFailure, leave, count, time }: Kept): TapStream {
  let open: string[] = []
  let file = ''
  let failing = false
  let counts: Counts | null = null
  const closeFailing = () => {
    for (const line of failuresOf(open)) printFailure(line)
    open = []
  }
  return {
    line(text) {
      const result = RESULT.exec(text)
      file = FILE.exec(text)?.[1] ?? file
      const [, test, reason] = SKIPPED.exec(text) ?? []
      if (test !== undefined) leave(`${test === file ? file : `${file}: ${test}`}: ${reason}`)
      if (SUMMARY.test(text)) {
        counts = { passed: figure('pass', text), failed: figure('fail', text) }
      } else if (result) {
        failing = result[1] !== undefined
        if (file !== '') time(file, Number(TIME.exec(text)?.[1] ?? 0))
        if (failing) closeFailing()
        open = []
        const show = failing ? printFailure : print
        show(text)
      } else if (text.startsWith('# Subtest: ')) {
        failing = false
        open = [text]
      } else if (failing || text.startsWith('Bail out!')) {
        printFailure(text)
      } else {
        open.push(text)
      }
    },
    end(code) {
      if (counts === null) closeFailing()
      const { passed, failed } = counts ?? { passed: 0, failed: 1 }
      count({ passed, failed: code === 0 ? failed : Math.max(1, failed) })
    },
  }
}

/** Creates a report that prints with `print`, line by line. */
export function tapReport(print: (text: string) => void): TapReport {
  const leftOut: string[] = []
  const failures: string[] = []
  const times = new Map<string, number>()
  const all: Counts = { passed: 0, failed: 0 }
  const count = ({ passed, failed }: Counts) => {
    all.passed += passed
    all.failed += failed
  }
  return {
    times,
    stream: () =>
      tapStream({
        print,
        printFailure: (text) => {
          failures.push(text)
          print(text)
        },
        leave: (what) => leftOut.push(`  ${what}`),
        count,
        time: (file, ms) => times.set(file, ms),
      }),
    finish() {
      if (leftOut.length > 0) print(['left out:', ...leftOut].join('\n'))
      // Failures are repeated here, because readers of a long log see its end first.
      if (failures.length > 0) print(['failed:', ...failures.slice(0, MOST_REPEATED)].join('\n'))
      return all
    },
  }
}
