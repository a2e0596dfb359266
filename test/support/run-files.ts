/**
 * Runs test files side by side and begins them in the order of its arguments, which tap's own command sorts by name.
 * Prints TAP as `tap --reporter=tap` does. Must not know which files there are.
 */
import t from 'tap'

/** Three times as many as the two cores of a small machine: the slow tests mostly wait. */
const JOBS = 6
/** Of one file, in seconds, as .taprc has it. A file reports to its parent the one that it finds in its environment. */
const TIMEOUT = 300

t.setTimeout(0)
t.jobs = JOBS
for (const file of process.argv.slice(2)) {
  const env = { ...process.env, TAP_TIMEOUT: String(TIMEOUT) }
  const options = { at: null, stack: '', buffered: true, timeout: TIMEOUT * 1_000, env }
  void t.spawn(process.execPath, [file], options, file)
}
