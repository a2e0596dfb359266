/**
 * Runs `npm run test:mutants [-- WORDS]`: tests against Stryker's mutants of their sources (covered.ts), all
 * or those whose path contains one of WORDS. Tests that need a database use that of test:one. Prints each
 * surviving mutant without a reason in survivors.ts. Exits 1 for such a mutant, for a line of survivors.ts
 * that is killed now, and if fewer than 90 % are killed.
 */
import { rmSync } from 'node:fs'
import { mkdtemp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { program } from 'commander'
import { needsDatabase, openServer } from '../support/kept-server.ts'
import { quickParent } from '../support/quick-server.ts'
import { TIMEOUT } from '../support/runners.ts'
import { ROOT } from '../support/sources.ts'
import { COVERED } from './covered.ts'
import { mutantsOf } from './stryker.ts'
import { SURVIVORS } from './survivors.ts'

const GOAL = 0.9

const print = (line: string): void => void process.stdout.write(`${line}\n`)
const isStateful = (tests: readonly string[]) => tests.some((file) => needsDatabase(join(ROOT, file)))

/** Tries the mutants of a source. @returns how many there are, are killed, and need a word in survivors.ts. */
async function judge(file: string, tests: readonly string[], scratch: string) {
  const began = Date.now()
  const text = await readFile(join(ROOT, file), 'utf8')
  // A run stopped at its first failure leaves its database.
  const mutants = await mutantsOf({ file, text }, tests, { scratch, bail: !isStateful(tests) })
  const left = mutants.filter(({ isKilled }) => !isKilled)
  const minutes = ((Date.now() - began) / 60_000).toFixed(1)
  print(`${file}: ${mutants.length - left.length} of ${mutants.length} killed, ${minutes} min`)
  const known = new Set(Object.values(SURVIVORS[file] ?? {}).flat())
  const news = left.filter(({ name }) => !known.has(name))
  for (const { line, name } of news) print(`  no test notices, at line ${line}, ${name}`)
  const stale = [...known].filter((name) => !left.some((each) => each.name === name))
  for (const name of stale) print(`  killed or gone: ${name}`)
  return { made: mutants.length, killed: mutants.length - left.length, faults: news.length + stale.length }
}

async function main(words: string[]): Promise<void> {
  const chosen = Object.entries(COVERED).filter(
    ([file]) => words.length === 0 || words.some((word) => file.includes(word)),
  )
  if (chosen.length === 0)
    throw new Error(`No source in test/mutants/covered.ts contains ${words.join(' or ')}.`)
  const parent = await quickParent()
  const scratch = await mkdtemp(join(parent, 'heliograph-mutants-'))
  // By Ctrl-C too, where no finally runs.
  process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const opened = chosen.some(([, tests]) => isStateful(tests)) ? await openServer(parent) : null
  Object.assign(process.env, {
    ...(opened && { DATABASE_URL: opened.server.url, TEST_DATABASE_PREFIX: opened.server.prefix }),
    NODE_COMPILE_CACHE: join(scratch, 'cache'),
    TAP_TIMEOUT: String(TIMEOUT),
  })
  const all = { made: 0, killed: 0, faults: 0 }
  try {
    for (const [file, tests] of chosen) {
      const { made, killed, faults } = await judge(file, tests, scratch)
      all.made += made
      all.killed += killed
      all.faults += faults
    }
  } finally {
    await opened?.close()
  }
  const share = all.killed / all.made
  print(`${all.killed} of ${all.made} mutants killed, ${(share * 100).toFixed(1)} %`)
  process.exitCode = all.faults > 0 || share < GOAL ? 1 : 0
}

const command = program
  .name('npm run test:mutants --')
  .description('Runs tests against mutants of their sources (test/mutants/covered.ts).')
  .argument('[word...]', 'only sources with one of these words in their paths')
  .parse()
await main(command.args).catch((error: Error) => command.error(error.message))
