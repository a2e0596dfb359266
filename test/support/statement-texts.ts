/**
 * Records the texts of statements by the function that builds them, and compares them with the files in
 * test/db/statements. There is a file for each module, and a section for each function with its texts. To
 * write new texts: UPDATE_STATEMENTS=1. Delete the folder first to remove old ones.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type QuerySqlToken, sql } from 'slonik'
import { ROOT } from './sources.ts'
import { linesOf } from './sql-lines.ts'
import type { Test } from './tap.ts'

export const STATEMENTS = join(ROOT, 'test/db/statements')

/** The texts of a module's statements, by function. */
type Texts = Map<string, Set<string>>

/** Returns the module and the function that called a tag. */
function callerOf(tag: (...args: never[]) => unknown): { module: string; name: string } | null {
  const { prepareStackTrace } = Error
  const trace: { stack?: unknown } = {}
  Error.prepareStackTrace = (_error, frames) => frames
  Error.captureStackTrace(trace, tag)
  const frames = trace.stack as NodeJS.CallSite[]
  Error.prepareStackTrace = prepareStackTrace
  const url = frames[0]?.getFileName()
  const module = url?.startsWith('file:') ? fileURLToPath(url).slice(ROOT.length + 1) : ''
  if (!module.startsWith('db/')) return null
  const own = frames.filter((frame) => frame.getFileName() === url)
  return { module, name: own.map((frame) => frame.getFunctionName()).find((name) => name) ?? 'module' }
}

/** Records every statement of `db` that is built in this process during `work`, by module. */
export async function statementsDuring(work: () => Promise<unknown>): Promise<Map<string, Texts>> {
  const { type, prepared, unsafe } = sql
  const seen = new Map<string, Texts>()
  const callers = new Map<TemplateStringsArray, ReturnType<typeof callerOf>>()
  type Tag = (strings: TemplateStringsArray, ...values: never[]) => QuerySqlToken
  const recorded = (tag: Tag): Tag =>
    function record(strings, ...values) {
      const token = tag(strings, ...values)
      if (!callers.has(strings)) callers.set(strings, callerOf(record))
      const caller = callers.get(strings)
      if (!caller) return token
      const texts = seen.get(caller.module) ?? new Map()
      seen.set(caller.module, texts)
      texts.set(caller.name, (texts.get(caller.name) ?? new Set()).add(token.sql))
      return token
    }
  Object.assign(sql, {
    type: (...args: Parameters<typeof type>) => recorded(type(...args) as Tag),
    prepared: (...args: Parameters<typeof prepared>) => recorded(prepared(...args) as Tag),
    unsafe: recorded(unsafe as Tag),
  })
  try {
    await work()
  } finally {
    Object.assign(sql, { type, prepared, unsafe })
  }
  return seen
}

const toText = (statement: string): string => linesOf(statement.replaceAll(/\$slonik_(\d+)/g, '$$$1'))

/** Returns the path of a module's file. */
const fileOf = (module: string): string =>
  join(STATEMENTS, module.replace(/^db\//, '').replace(/(\.sql)?\.ts$/, '.sql'))

/** Reads the texts in a module's file. */
export function readTexts(file: string): Texts {
  const texts: Texts = new Map()
  if (!existsSync(file)) return texts
  for (const section of readFileSync(file, 'utf8').split(/^(?=-- )/m)) {
    const [title = '', ...lines] = section.split('\n')
    const name = title.slice('-- '.length)
    texts.set(name, (texts.get(name) ?? new Set()).add(`${lines.join('\n').trim()}\n`))
  }
  return texts
}

function writeTexts(file: string, texts: Texts): void {
  const sections = [...texts].flatMap(([name, all]) => [...all].map((text) => `-- ${name}\n${text}`))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, sections.sort().join('\n'))
}

/** Fails for each statement whose text isn't in its module's file, or writes it with UPDATE_STATEMENTS. */
export function compareStatements(t: Test, seen: ReadonlyMap<string, Texts>): void {
  const unknown: string[] = []
  for (const [module, statements] of seen) {
    const file = fileOf(module)
    const texts = readTexts(file)
    for (const [name, all] of statements)
      for (const text of [...all].map(toText)) {
        const written = texts.get(name) ?? new Set()
        if (written.has(text)) continue
        unknown.push(`${module}, ${name}:\n${text}`)
        texts.set(name, written.add(text))
      }
    if (process.env.UPDATE_STATEMENTS) writeTexts(file, texts)
  }
  if (!process.env.UPDATE_STATEMENTS)
    t.strictSame(unknown, [], 'every text is written, or write it with UPDATE_STATEMENTS=1')
}
