/**
 * Reads the TAP that the test runner prints and makes a log of it that people can read: a line per passing file, also
 * where several have shared a process, all of what failed in a failing one, and what was left out at the end.
 * Promises: the counts are tap's own, or null when tap did not get to the end.
 */

export type Counts = { passed: number; failed: number }

export type TapReport = {
  /** Takes the next line of TAP. */
  line(text: string): void
  /** Prints what an interrupted run left open and the tests that were left out, and returns the counts. */
  finish(): Counts | null
}

const SUMMARY = /^# \{ total: \d+/
const RESULT = /^(not )?ok \d+/
const PASSED = /^( +)ok \d+/
const SKIPPED = /^ *ok \d+ - (.+?) # SKIP (.+)$/
/** A test file, by itself or within the process that it shares. */
const FILE = /^(?: {4})?# Subtest: (\S+\.test\.ts)$/
const SHARED_FILE = /^ {4}(ok \d+ - \S+\.test\.ts( .*)?)$/
const SILENT = /^\s*(1\.\.\d+.*)?$/

const figure = (name: string, summary: string) =>
  Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0)

/** The lines of a failing file without those of the tests in it that passed. */
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

/** What is said of a process that passed: its files, or its own line where it is one file. */
function passedFiles(lines: readonly string[], own: string): string[] {
  const files = lines.flatMap((line) => SHARED_FILE.exec(line)?.[1] ?? [])
  return files.length > 0 ? files : [own]
}

/** A report that prints through `print`, line by line. */
export function tapReport(print: (text: string) => void): TapReport {
  let open: string[] = []
  let file = ''
  const leftOut: string[] = []
  let failing = false
  let counts: Counts | null = null
  const close = (lines: readonly string[]) => {
    for (const line of lines) print(line)
    open = []
  }
  return {
    line(text) {
      const result = RESULT.exec(text)
      file = FILE.exec(text)?.[1] ?? file
      const [, test, reason] = SKIPPED.exec(text) ?? []
      if (test !== undefined) leftOut.push(`  ${test === file ? file : `${file}: ${test}`}: ${reason}`)
      if (SUMMARY.test(text)) {
        counts = { passed: figure('pass', text), failed: figure('fail', text) }
      } else if (result) {
        failing = result[1] !== undefined
        close(failing ? [...failuresOf(open), text] : passedFiles(open, text))
      } else if (text.startsWith('# Subtest: ')) {
        failing = false
        open = [text]
      } else if (failing || text.startsWith('Bail out!')) {
        print(text)
      } else {
        open.push(text)
      }
    },
    finish() {
      if (counts === null) close(failuresOf(open))
      if (leftOut.length > 0) print(['left out:', ...leftOut].join('\n'))
      return counts
    },
  }
}
