/** A run of the whole suite: its order, and what it reports at its end. */
import { spawnSync } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SLOWEST, testGroups } from './support/order.ts'
import { ROOT } from './support/sources.ts'
import t from './support/tap.ts'
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

t.test('files that share a process are reported one by one, and what fails in one names it', async (t) => {
  const said: string[] = []
  const report = tapReport((line) => said.push(line))
  const lines = [
    '# Subtest: test/a.test.ts test/b.test.ts',
    '    # Subtest: test/a.test.ts',
    '        ok 1 - one',
    '    ok 1 - test/a.test.ts # time=1ms',
    '    # Subtest: test/b.test.ts',
    '        # Subtest: with promtool',
    '            1..0 # SKIP promtool is not installed',
    '        ok 1 - with promtool # SKIP promtool is not installed',
    '    ok 2 - test/b.test.ts # time=2ms',
    '    1..2',
    'ok 1 - test/a.test.ts test/b.test.ts # time=3ms',
    '# Subtest: test/c.test.ts test/d.test.ts',
    '    # Subtest: test/c.test.ts',
    '        ok 1 - one',
    '    ok 1 - test/c.test.ts # time=1ms',
    '    # Subtest: test/d.test.ts',
    '        not ok 1 - two',
    '    not ok 2 - test/d.test.ts # time=2ms',
    '    1..2',
    'not ok 2 - test/c.test.ts test/d.test.ts # time=3ms',
    '# { total: 4, pass: 2, skip: 1, fail: 1 }',
  ]
  for (const line of lines) report.line(line)
  t.strictSame(report.finish(), { passed: 2, failed: 1 })
  t.strictSame(said, [
    'ok 1 - test/a.test.ts # time=1ms',
    'ok 2 - test/b.test.ts # time=2ms',
    '# Subtest: test/c.test.ts test/d.test.ts',
    '    # Subtest: test/d.test.ts',
    '        not ok 1 - two',
    '    not ok 2 - test/d.test.ts # time=2ms',
    'not ok 2 - test/c.test.ts test/d.test.ts # time=3ms',
    'left out:\n  test/b.test.ts: with promtool: promtool is not installed',
  ])
})

t.test('files that share a process follow one another, each with a clean-up of its own', async (t) => {
  const own = pathToFileURL(join(ROOT, 'test/support/tap.ts')).href
  const file = (name: string, more = '') => `import t from ${JSON.stringify(own)}
    console.error('${name} begins')
    t.teardown(() => console.error('${name} is cleared away'))
    t.test('${name} waits', (t) => new Promise((done) => setTimeout(done, 20)))
    t.test('${name} is asked', async (t) => { t.ok(true); ${more} })`
  const folder = t.testdir({ 'a.test.mjs': file('a'), 'b.test.mjs': file('b', 't.fail("b fails")') })
  const files = ['a.test.mjs', 'b.test.mjs'].map((name) => relative(ROOT, join(folder, name)))
  const argv = [join(ROOT, 'test/support/run-files.ts'), files.join(',')]
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { env: {}, encoding: 'utf8' })
  t.equal(status, 1)
  t.strictSame(stderr.match(/[ab] (begins|is cleared away)/g), [
    ...['a begins', 'a is cleared away'],
    ...['b begins', 'b is cleared away'],
  ])
  t.match(stdout, /^# \{ total: 5, pass: 4, fail: 1 \}$/m)
})

t.test('a run begins with the slowest test files, and every one of them is there', async (t) => {
  const groups = await testGroups(ROOT)
  const files = groups.flat()
  t.strictSame(groups.slice(0, SLOWEST.length).flat(), SLOWEST)
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
