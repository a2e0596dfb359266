/**
 * Exports tap for test files: `t` is the test of the current file. Several files share a process, one after
 * another (see test/support/runners.ts). A file's clean-up ends before the next file starts. A file that runs
 * by itself gets tap's own `t`. No pattern of `t.match` may contain a Date, because tap lets it match any
 * other Date; write times as text.
 */
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Assertions } from '@tapjs/asserts'
import tap, { type Test } from 'tap'
import { canary } from './canary.ts'
import { TIMEOUT } from './runners.ts'

const ROOT = join(import.meta.dirname, '../..')

// A live binding. It doesn't change while a file runs, because the next file waits for its end.
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
    // If they differ, the assertion passes. tap would first format the differences of an entire page, and
    // discard them.
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
    // Processes that start before this one ends can use the cache.
    flushCompileCache()
  })
  return result?.ok === true
}
