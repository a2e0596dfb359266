/**
 * What `npm run test:mutants [-- WORDS]` runs: the tests that need no database against mutants of the sources they
 * judge (covered.ts), all of them or those whose path has one of the words.
 * Promises: prints each mutant that no test notices, unless survivors.ts says why; exits 1 for such a one, for a line
 * of survivors.ts that is killed today, and where fewer than 90 % are killed.
 */
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/sources.ts'
import { COVERED } from './covered.ts'
import { type Mutant, mutantsOf } from './mutants.ts'
import { SURVIVORS } from './survivors.ts'

/** A mutant that says nothing for so long never ends, in milliseconds: the slowest tests take a tenth of it. */
const ENDLESS_MS = 30_000
const GOAL = 0.9

const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** Tries mutants from the nth on. @returns which passed, and the next to try: one that never ended counts as killed. */
async function tryFrom(source: string, tests: readonly string[], from: number) {
  const child = fork(join(ROOT, 'test/mutants/try.ts'), [source, tests.join(','), String(from)], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, TAP_DIAG: '0' },
  })
  const passed: number[] = []
  let [last, whole] = [from - 1, false]
  const timer = setTimeout(() => child.kill('SIGKILL'), ENDLESS_MS)
  child.on('message', (said: { nth: number; passed: boolean }) => {
    timer.refresh()
    if (said.nth === -1) whole = said.passed
    else last = said.nth
    if (said.nth >= 0 && said.passed) passed.push(said.nth)
  })
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  clearTimeout(timer)
  if (!whole) throw new Error(`the tests of ${source} fail without a mutant: ${tests.join(' ')}`)
  return { passed, next: code === 0 ? null : last + 2 }
}

async function survivorsOf(source: string, tests: readonly string[], mutants: Mutant[]): Promise<Mutant[]> {
  const left: Mutant[] = []
  for (let from: number | null = 0; from !== null && from < mutants.length; ) {
    const { passed, next } = await tryFrom(source, tests, from)
    left.push(...passed.flatMap((nth) => mutants[nth] ?? []))
    from = next
  }
  return left
}

async function main(words: string[]): Promise<void> {
  const all = { made: 0, killed: 0, faults: 0 }
  const fault = (line: string): void => {
    all.faults++
    print(line)
  }
  for (const [source, tests] of Object.entries(COVERED)) {
    if (words.length > 0 && !words.some((word) => source.includes(word))) continue
    const mutants = mutantsOf(readFileSync(join(ROOT, source), 'utf8'))
    const left = await survivorsOf(source, tests, mutants)
    all.made += mutants.length
    all.killed += mutants.length - left.length
    print(`${source}: ${mutants.length - left.length} of ${mutants.length} killed`)
    const names = left.map(({ name }) => `${source}: ${name}`)
    for (const [nth, { line }] of left.entries())
      if (!((names[nth] ?? '') in SURVIVORS)) fault(`  no test notices, at line ${line}, ${names[nth]}`)
    for (const name of Object.keys(SURVIVORS))
      if (name.startsWith(`${source}:`) && !names.includes(name)) fault(`  killed or gone: ${name}`)
  }
  const share = all.killed / all.made
  print(`${all.killed} of ${all.made} mutants killed, ${(share * 100).toFixed(1)} %`)
  process.exitCode = all.faults > 0 || share < GOAL ? 1 : 0
}

await main(process.argv.slice(2))
