/**
 * tap, as test files use it: `t` is the test of the file that runs now. Several files share a process, one after
 * another (test/support/runners.ts says why).
 * Promises: a file's clean-up is done before the next file begins; a file that is run by itself has tap's own `t`;
 * no pattern of `t.match` holds a Date, which tap lets any other Date match: a time in a pattern is text.
 */
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Assertions } from '@tapjs/asserts'
import tap, { type Test } from 'tap'
import { canary } from './canary.ts'
import { TIMEOUT } from './runners.ts'

const ROOT = join(import.meta.dirname, '../..')

// A live binding: a file that is imported while it has a value keeps to it, since the next one waits for its end.
let current: Test = tap

export type { Test } from 'tap'
export { current as default }

function refuseDates(pattern: unknown): void {
  if (pattern instanceof Date) throw new Error('t.match takes any Date for a Date: write its toISOString()')
  if (pattern === null || typeof pattern !== 'object' || Buffer.isBuffer(pattern)) return
  for (const each of Object.values(pattern)) refuseDates(each)
}

const { match, notMatch } = Assertions.prototype
Object.assign(Assertions.prototype, {
  match(this: Assertions, ...args: Parameters<typeof match>) {
    refuseDates(args[1])
    return match.apply(this, args)
  },
  notMatch(this: Assertions, ...args: Parameters<typeof match>) {
    refuseDates(args[1])
    const [found, pattern, ...said] = args
    // tap would write down how they differ, which is a whole page, and throw it away: where they do, it passes.
    if (typeof found === 'string' && pattern instanceof RegExp && !found.match(pattern))
      return this.ok(true, ...said)
    return notMatch.apply(this, args)
  },
})

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
