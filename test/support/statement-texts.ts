/**
 * Records the texts of statements by the function that builds them. test/db/statements has a file for each
 * module, and a section for each function with its texts.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type QuerySqlToken, sql } from 'slonik'
import { ROOT } from './sources.ts'
import { linesOf } from './sql-lines.ts'

/** The texts of each function, by module and function. */
type Recorded = Map<string, Map<string, Set<string>>>
type Caller = { module: string; name: string }

/** Returns the name of the function or constant of a module that contains a line. */
function declarationAt(lines: readonly string[], line: number): string {
  for (const each of lines.slice(0, line).toReversed()) {
    const [, name] = /^(?:export )?(?:async )?(?:function|const) (\w+)/.exec(each) ?? []
    if (name !== undefined) return name
  }
  return 'module'
}

/** Returns the functions of a module's source that build statements. */
export function buildersIn(source: string): string[] {
  const lines = source.split('\n')
  const places = lines.flatMap((line, at) => (/\bsql\.(?:type|prepared|unsafe)\b/.test(line) ? [at + 1] : []))
  return [...new Set(places.map((at) => declarationAt(lines, at)))]
}

/** Returns the module of `db` and the function that called a tag. */
function callerOf(tag: (...args: never[]) => unknown): Caller | null {
  const { prepareStackTrace } = Error
  const trace: { stack?: unknown } = {}
  Error.prepareStackTrace = (_error, frames) => frames
  Error.captureStackTrace(trace, tag)
  const [frame] = trace.stack as NodeJS.CallSite[]
  Error.prepareStackTrace = prepareStackTrace
  const url = frame?.getFileName()
  const path = url?.startsWith('file:') ? fileURLToPath(url) : ''
  const module = path.slice(ROOT.length + 1)
  if (!module.startsWith('db/')) return null
  const name = declarationAt(readFileSync(path, 'utf8').split('\n'), frame?.getLineNumber() ?? 0)
  return { module, name }
}

/** Records every statement of `db` that is built in this process until `stop`. */
export function recordStatements() {
  const { type, prepared, unsafe } = sql
  const recorded: Recorded = new Map()
  const callers = new Map<TemplateStringsArray, Caller | null>()
  type Tag = (strings: TemplateStringsArray, ...values: never[]) => QuerySqlToken
  const recording = (tag: Tag): Tag =>
    function record(strings, ...values) {
      const token = tag(strings, ...values)
      if (!callers.has(strings)) callers.set(strings, callerOf(record))
      const caller = callers.get(strings)
      if (!caller) return token
      const module = recorded.get(caller.module) ?? new Map()
      recorded.set(
        caller.module,
        module.set(caller.name, (module.get(caller.name) ?? new Set()).add(token.sql)),
      )
      return token
    }
  Object.assign(sql, {
    type: (...args: Parameters<typeof type>) => recording(type(...args) as Tag),
    prepared: (...args: Parameters<typeof prepared>) => recording(prepared(...args) as Tag),
    unsafe: recording(unsafe as Tag),
  })
  return { recorded, stop: () => void Object.assign(sql, { type, prepared, unsafe }) }
}

/** Returns a statement as the driver sends it. */
export const sentText = (statement: string): string => statement.replaceAll(/\$slonik_(\d+)/g, '$$$1')

/** Returns the content of each file, by its path in the folder. */
export const filesOf = (recorded: Recorded): Map<string, string> =>
  new Map(
    [...recorded].map(([module, functions]) => {
      const sections = [...functions].flatMap(([name, texts]) =>
        [...new Set([...texts].map((text) => linesOf(sentText(text))))].map((text) => `-- ${name}\n${text}`),
      )
      return [module.replace(/^db\//, '').replace(/(\.sql)?\.ts$/, '.sql'), sections.sort().join('\n')]
    }),
  )
