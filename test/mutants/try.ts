/**
 * Runs test files once with each mutant of a source, in this process: a mutant is a query of the modules' URLs, so each
 * has modules of its own, and to load them costs milliseconds. Its parent (run.ts) hears which mutant passed; one that
 * never ends is the parent's to stop.
 */
import { readFileSync } from 'node:fs'
import module, { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { mutantsOf } from './mutants.ts'

const [source = '', tests = '', from = '0', to = '0'] = process.argv.slice(2)
const ROOT = join(import.meta.dirname, '../..')
const OURS = new RegExp(`^${pathToFileURL(ROOT).href}/(?:api|workers|db|test)/`)
/** What runs the tests is the same for all. */
const SHARED = /\/test\/support\/(tap|runners|canary|database)\.ts$/
const mutants = mutantsOf(readFileSync(join(ROOT, source), 'utf8'))
const target = pathToFileURL(join(ROOT, source)).href
let nth = -1

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    return OURS.test(found.url) && !SHARED.test(found.url)
      ? { ...found, url: `${found.url.split('?')[0]}?${nth}` }
      : found
  },
  load(url, context, next) {
    const code = url.startsWith(`${target}?`) && mutants[nth]?.code
    return code ? { format: 'module', source: code, shortCircuit: true } : next(url, context)
  },
})
module.registerHooks = () => ({ deregister() {} })
await import('../support/without-hooks.ts')
const { default: t, runFile } = await import('../support/tap.ts')
t.setTimeout(0)

/** Whether the files pass; the first one that does not settles it. */
async function passes(): Promise<boolean> {
  for (const file of tests.split(',')) if (!(await runFile(file))) return false
  return true
}

const say = (said: { nth: number; passed: boolean }) =>
  new Promise((resolve) => process.send?.(said, resolve) ?? resolve(null))

// First without a fault: what fails then says nothing of mutants.
await say({ nth: -1, passed: await passes() })
for (nth = Number(from); nth < Number(to); nth++) await say({ nth, passed: await passes() })
process.exit(0)
