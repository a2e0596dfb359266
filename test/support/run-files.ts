/**
 * Runs groups of test files side by side, and begins them in the order of its arguments, which tap's own command sorts
 * by name. A group's files are separated by commas and share a process. Prints TAP as `tap --reporter=tap` does. Must
 * not know which files there are.
 */
import { join } from 'node:path'
import t, { TIMEOUT } from './tap.ts'

/** Three times as many as the two cores of a small machine: the slow tests mostly wait. */
const JOBS = 6
/** Young objects get room: a test file lives too briefly for a collection to pay. */
const FLAGS = ['--max-semi-space-size=32', '--min-semi-space-size=16']
const TOGETHER = join(import.meta.dirname, 'together.ts')

t.setTimeout(0)
t.jobs = JOBS
for (const group of process.argv.slice(2)) {
  const files = group.split(',')
  // In seconds. A process reports to its parent the one that it finds in its environment.
  const timeout = TIMEOUT * files.length
  const env = { ...process.env, TEST_FILES: group, TAP_TIMEOUT: String(timeout) }
  const options = { at: null, stack: '', buffered: true, timeout: timeout * 1_000, env }
  void t.spawn(process.execPath, [...FLAGS, TOGETHER], options, files.join(' '))
}
