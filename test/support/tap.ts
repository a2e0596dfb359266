/**
 * tap, as test files use it: `t` is the test of the file that runs now. Several files share a process, one after
 * another (test/support/runners.ts says why).
 * Promises: a file's clean-up is done before the next file begins; a file that is run by itself has tap's own `t`.
 */
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import tap, { type Test } from 'tap'
import { canary } from './canary.ts'
import { TIMEOUT } from './runners.ts'

const ROOT = join(import.meta.dirname, '../..')

// A live binding: a file that is imported while it has a value keeps to it, since the next one waits for its end.
let current: Test = tap

export type { Test } from 'tap'
export { current as default }

/**
 * Runs a test file in this process, after those before it. @param file its path from the repository's root.
 * @returns when it has ended: whether it passed.
 */
export async function runFile(file: string): Promise<boolean> {
  const result = await tap.test(file, { timeout: TIMEOUT * 1_000 }, async (t) => {
    current = t
    t.teardown(() => canary.forget())
    await import(pathToFileURL(join(ROOT, file)).href)
    // For the processes that begin before this one ends.
    flushCompileCache()
  })
  return result?.ok === true
}
