/**
 * Runs Stryker: the mutants of one source, each against that source's tests in a separate process, in a copy
 * of the checkout in the given scratch directory. It knows no source.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Stryker } from '@stryker-mutator/core'
import { ROOT } from '../support/sources.ts'

const WITHOUT_HOOKS = join(ROOT, 'test/support/without-hooks.ts')

/** `name` is the mutator, the change, and the line around it, as the source has it. */
type Mutant = { line: number; name: string; isKilled: boolean }
type Result = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

/** The results that count as killed: a test fails, the process ends with an error, or it never ends. */
const KILLED = new Set<Result['status']>(['Killed', 'RuntimeError', 'Timeout'])

/** A text on one line, and no more of it than tells it from its neighbours. */
const brief = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= 80 ? line : `${line.slice(0, 60)}…${line.slice(-19)}`
}

function mutantOf(text: string, { status, mutatorName, replacement = '', location }: Result): Mutant {
  const { start, end } = location
  const within = text.split('\n').slice(start.line - 1, end.line)
  const first = within[0] ?? ''
  within.push((within.pop() ?? '').slice(0, end.column - 1))
  const was = within.join('\n').slice(start.column - 1)
  const around = within.length === 1 ? ` in ${first.trim()}` : ''
  return {
    line: start.line,
    name: `${mutatorName}: ${brief(was)} → ${brief(replacement)}${around}`,
    isKilled: KILLED.has(status),
  }
}

/** @param source its path from the root, and its text. @throws Error when tests fail without a mutant. */
export async function mutantsOf(
  { file, text }: { file: string; text: string },
  tests: readonly string[],
  { scratch, bail }: { scratch: string; bail: boolean },
): Promise<Mutant[]> {
  const results = await new Stryker({
    configFile: 'test/mutants/stryker.json',
    mutate: [file],
    tap: {
      testFiles: [...tests],
      nodeArgs: ['--disable-warning=ExperimentalWarning', `--import=${WITHOUT_HOOKS}`],
      forceBail: bail,
    },
    concurrency: availableParallelism(),
    tempDirName: scratch,
  }).runMutationTest()
  return results.map((result) => mutantOf(text, result)).sort((one, other) => one.line - other.line)
}
