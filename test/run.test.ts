/** A run of the whole suite: its order, and what it reports at its end. */
import { spawnSync } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { SLOWEST, testFiles } from './support/order.ts'
import { ROOT } from './support/sources.ts'
import { tapReport } from './support/tap-report.ts'

t.test('a run names the tests at its end that it left out, and why', async (t) => {
  const said: string[] = []
  const report = tapReport((line) => said.push(line))
  const lines = [
    '# Subtest: test/a.test.ts',
    '    ok 1 - through a pooler # SKIP pgbouncer is not installed',
    '    # Subtest: with promtool',
    '        1..0 # SKIP promtool is not installed',
    '    ok 2 - with promtool # SKIP promtool is not installed',
    '    1..2',
    'ok 1 - test/a.test.ts # time=1ms',
    '# Subtest: test/b.test.ts',
    '    1..0 # SKIP chromium is not installed',
    'ok 2 - test/b.test.ts # SKIP chromium is not installed',
    '# { total: 3, skip: 3 }',
  ]
  for (const line of lines) report.line(line)
  t.strictSame(report.finish(), { passed: 0, failed: 0 })
  t.strictSame(said.at(-1)?.split('\n'), [
    'left out:',
    '  test/a.test.ts: through a pooler: pgbouncer is not installed',
    '  test/a.test.ts: with promtool: promtool is not installed',
    '  test/b.test.ts: chromium is not installed',
  ])
})

t.test('a run begins with the slowest test files, and every one of them is there', async (t) => {
  const files = await testFiles(ROOT)
  t.strictSame(files.slice(0, SLOWEST.length), SLOWEST)
  t.equal(new Set(files).size, files.length)
  await Promise.all(files.map((file) => access(join(ROOT, file))))
})

t.test('an error that nobody waits for fails the test file, and says where it was', async (t) => {
  const preload = pathToFileURL(join(ROOT, 'test/support/without-hooks.ts')).href
  const run = (line: string) => {
    const script = `import t from 'tap'
      t.test('passes', async (t) => t.ok(true))
      t.test('forgets to wait', async (t) => { t.ok(true); ${line} })`
    const args = [`--import=${preload}`, '--input-type=module', '-']
    const options = { cwd: ROOT, env: {}, input: script, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(process.execPath, args, options)
    return { status, text: stdout + stderr }
  }
  t.match(run(''), { status: 0, text: 'pass: 2' })
  for (const line of ["setTimeout(() => { throw Error('late') }, 20)", "void Promise.reject(Error('late'))"])
    t.match(run(line), { status: 1, text: /Error: late|not ok \d+ - late/ }, line)
})
