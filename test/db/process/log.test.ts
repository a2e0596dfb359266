/** The format of the log: readable lines if possible, otherwise JSON with a warning. */
import { join } from 'node:path'
import { runProgram } from '../../support/programs.ts'
import t from '../../support/tap.ts'

const LOG = join(import.meta.dirname, '../../../db/process/log.ts')
// Like an installation without development dependencies.
const HIDE = `import { registerHooks } from 'node:module'
registerHooks({ resolve: (name, context, next) => {
  if (name === 'pino-pretty') throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' })
  return next(name, context)
} })`
const USE = `const { createLog } = await import(${JSON.stringify(LOG)})
const log = await createLog({ name: 'api', LOG_LEVEL: 'info', LOG_FORMAT: 'pretty' })
log.info('listening')`

const run = async (...preload: string[]): Promise<string[]> => {
  const args = [...preload, '--input-type=module', '-e', USE]
  const { stdout } = await runProgram(process.execPath, args, { env: { PATH: process.env.PATH } })
  return stdout.trim().split('\n')
}

t.test('LOG_FORMAT=pretty falls back to JSON without pino-pretty', async (t) => {
  const lines = await run('--import', `data:text/javascript,${encodeURIComponent(HIDE)}`)
  t.match(
    lines.map((line) => JSON.parse(line)),
    [
      { level: 40, msg: /^LOG_FORMAT=pretty needs pino-pretty/ },
      { level: 30, msg: 'listening' },
    ],
  )
})

t.test('LOG_FORMAT=pretty writes readable lines', async (t) => {
  const [line = '', ...others] = await run()
  t.match(line, /INFO.*listening$/)
  t.strictSame(others, [])
})
