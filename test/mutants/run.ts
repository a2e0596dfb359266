/**
 * What `npm run test:mutants [-- WORDS]` runs: tests against mutants of the sources they judge (covered.ts), all of
 * them or those whose path has one of the words. Tests that need a database have the one that test:one keeps.
 * Promises: prints each mutant that no test notices, unless survivors.ts says why; exits 1 for such a one, for a line
 * of survivors.ts that is killed today, and where fewer than 90 % are killed.
 */
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needsDatabase, openServer } from '../support/kept-server.ts'
import { quickParent } from '../support/quick-server.ts'
import { ROOT } from '../support/sources.ts'
import { COVERED } from './covered.ts'
import { type Mutant, mutantsOf } from './mutants.ts'
import { SURVIVORS } from './survivors.ts'

/** How long tests may take without a mutant, in milliseconds, and how many times as long with one that ends. */
const [LONGEST, TIMES, LEAST] = [600_000, 8, 30_000]
/** How many mutants a process tries: each leaves its modules behind. */
const BATCH = 40
const GOAL = 0.9

const print = (line: string): void => void process.stdout.write(`${line}\n`)

type Judges = { tests: readonly string[]; env: Record<string, string> }

/** Tries mutants from the nth on. @returns which passed, and the next to try: one that never ended counts as killed. */
async function tryFrom(source: string, { tests, env }: Judges, from: number, to: number) {
  const child = fork(join(ROOT, 'test/mutants/try.ts'), [source, tests.join(','), String(from), String(to)], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, ...env, TAP_DIAG: '0' },
  })
  const passed: number[] = []
  let [last, whole] = [from - 1, false]
  const began = Date.now()
  const stop = () => void child.kill('SIGKILL')
  let timer = setTimeout(stop, LONGEST)
  child.on('message', (said: { nth: number; passed: boolean }) => {
    timer.refresh()
    if (said.nth === -1) {
      whole = said.passed
      clearTimeout(timer)
      timer = setTimeout(stop, Math.max(LEAST, TIMES * (Date.now() - began)))
    } else last = said.nth
    if (said.nth >= 0 && said.passed) passed.push(said.nth)
  })
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  clearTimeout(timer)
  if (!whole) throw new Error(`the tests of ${source} fail without a mutant: ${tests.join(' ')}`)
  return { passed, next: code === 0 ? to : last + 2 }
}

async function survivorsOf(source: string, judges: Judges, mutants: Mutant[]): Promise<Mutant[]> {
  const left: Mutant[] = []
  for (let from = 0; from < mutants.length; ) {
    const { passed, next } = await tryFrom(source, judges, from, Math.min(from + BATCH, mutants.length))
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
  const chosen = Object.entries(COVERED).filter(
    ([source]) => words.length === 0 || words.some((word) => source.includes(word)),
  )
  const isPure = (tests: readonly string[]) => !tests.some((file) => needsDatabase(join(ROOT, file)))
  const opened = chosen.every(([, tests]) => isPure(tests)) ? null : await openServer(await quickParent())
  const env = opened ? { DATABASE_URL: opened.server.url, TEST_DATABASE_PREFIX: opened.server.prefix } : {}
  try {
    for (const [source, tests] of chosen) {
      const mutants = mutantsOf(readFileSync(join(ROOT, source), 'utf8'))
      const judges = { tests, env }
      const left = await survivorsOf(source, judges, mutants)
      all.made += mutants.length
      all.killed += mutants.length - left.length
      print(`${source}: ${mutants.length - left.length} of ${mutants.length} killed`)
      const names = left.map(({ name }) => `${source}: ${name}`)
      for (const [nth, { line }] of left.entries())
        if (!((names[nth] ?? '') in SURVIVORS)) fault(`  no test notices, at line ${line}, ${names[nth]}`)
      for (const name of Object.keys(SURVIVORS))
        if (name.startsWith(`${source}:`) && !names.includes(name)) fault(`  killed or gone: ${name}`)
    }
  } finally {
    await opened?.close()
  }
  const share = all.killed / all.made
  print(`${all.killed} of ${all.made} mutants killed, ${(share * 100).toFixed(1)} %`)
  process.exitCode = all.faults > 0 || share < GOAL ? 1 : 0
}

await main(process.argv.slice(2))
