/** A run of all tests: its order and its report. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { access, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { testServer } from './support/database.ts'
import { bareEnvironment } from './support/environment.ts'
import { HEAVY, keepTimes, quickFiles, SLOWEST, testFiles } from './support/order.ts'
import { program } from './support/program.ts'
import { runFiles } from './support/runners.ts'
import { ROOT } from './support/sources.ts'
import t, { type Test } from './support/tap.ts'
import { tapReport } from './support/tap-report.ts'

t.test('lists skipped tests and their reasons at the end', async (t) => {
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
  const stream = report.stream()
  for (const line of lines) stream.line(line)
  stream.end(0)
  t.strictSame(report.finish(), { passed: 0, failed: 0 })
  t.strictSame(said.at(-1)?.split('\n'), [
    'left out:',
    '  test/a.test.ts: through a pooler: pgbouncer is not installed',
    '  test/a.test.ts: with promtool: promtool is not installed',
    '  test/b.test.ts: chromium is not installed',
  ])
})

t.test('a process that exits early fails, showing its last test', async (t) => {
  const said: string[] = []
  const report = tapReport((line) => said.push(line))
  const [whole, cut] = [report.stream(), report.stream()]
  const begun = ['# Subtest: test/a.test.ts', '    ok 1 - one', '    # Subtest: two']
  for (const line of begun) cut.line(line)
  for (const line of ['# Subtest: test/b.test.ts', '    ok 1 - one', 'ok 1 - test/b.test.ts'])
    whole.line(line)
  whole.line('# { total: 1, pass: 1 }')
  whole.end(0)
  cut.end(0)
  t.strictSame(report.finish(), { passed: 1, failed: 1 })
  const failed = ['# Subtest: test/a.test.ts', '    # Subtest: two']
  t.strictSame(said, ['ok 1 - test/b.test.ts', ...failed, ['failed:', ...failed].join('\n')])
})

t.test('a run repeats its failures at its end', async (t) => {
  const said: string[] = []
  const report = tapReport((line) => said.push(line))
  const stream = report.stream()
  const failure = ['    not ok 2 - two', '      ---', '      found: 1', '      ...']
  for (const line of ['# Subtest: test/a.test.ts', '    ok 1 - one', ...failure]) stream.line(line)
  for (const line of ['not ok 1 - test/a.test.ts # time=1ms', '# Subtest: test/b.test.ts']) stream.line(line)
  for (const line of ['    ok 1 - one', 'ok 2 - test/b.test.ts', '# { total: 3, pass: 2, fail: 1 }'])
    stream.line(line)
  stream.end(1)
  t.strictSame(report.finish(), { passed: 2, failed: 1 })
  const failed = ['# Subtest: test/a.test.ts', ...failure, 'not ok 1 - test/a.test.ts # time=1ms']
  t.strictSame(said.at(-1)?.split('\n'), ['failed:', ...failed])
})

const TAP = JSON.stringify(pathToFileURL(join(ROOT, 'test/support/tap.ts')).href)

/** Makes a test file that prints its process on stderr, then runs these lines. */
const testFile = (name: string, lines: string) => `import t from ${TAP}
  console.error('${name} runs in', process.pid)
  t.teardown(() => console.error('${name} is cleared away'))
  t.test('${name} waits', (t) => new Promise((done) => setTimeout(done, 20)))
  ${lines}`

/** Runs test files with these lines, like the complete suite. */
async function runAll(
  t: Test,
  files: Record<string, string>,
  { silence = 60, ...counts }: { silence?: number; most?: number; spares?: number } = {},
) {
  const folder = t.testdir(Object.fromEntries(Object.entries(files).map(([n, l]) => [n, testFile(n, l)])))
  const errors: string[] = []
  const said: string[] = []
  const report = tapReport((line) => said.push(line))
  const paths = Object.keys(files).map((name) => relative(ROOT, join(folder, name)))
  await runFiles(paths, {
    taken: join(folder, 'taken'),
    stream: report.stream,
    silence,
    ...counts,
    async start({ argv, env, line, stop }) {
      const own = { ...bareEnvironment(), ...env }
      const child = spawn(process.execPath, argv, { cwd: ROOT, env: own, stdio: 'pipe' })
      stop.addEventListener('abort', () => child.kill('SIGKILL'))
      createInterface({ input: child.stdout }).on('line', line)
      createInterface({ input: child.stderr }).on('line', (text) => errors.push(text))
      const [code] = await once(child, 'close')
      return code ?? 1
    },
  })
  return { ...report.finish(), said, errors }
}

t.test('files share a few processes, run once and clean up', async (t) => {
  const names = Array.from({ length: 20 }, (_, nth) => `${nth}.test.mjs`)
  const lines = "t.test('is asked', async (t) => t.ok(true))"
  const { passed, failed, said, errors } = await runAll(
    t,
    Object.fromEntries(names.map((name) => [name, lines])),
  )
  t.strictSame({ passed, failed }, { passed: 40, failed: 0 })
  t.strictSame(said.map((line) => /[^/]+(?= # time)/.exec(line)?.[0]).sort(), [...names].sort())
  const runs = errors.flatMap((line) => /^(\S+) runs in (\d+)$/.exec(line)?.slice(1) ?? [])
  t.ok(new Set(runs.filter((_, index) => index % 2)).size <= 5, 'five processes at most')
  for (const name of names) {
    const begun = errors.findIndex((line) => line.startsWith(`${name} runs in`))
    const process = errors[begun]?.split(' ').at(-1)
    const next = errors.findIndex((line, index) => index > begun && line.endsWith(` runs in ${process}`))
    const cleared = errors.indexOf(`${name} is cleared away`)
    t.ok(cleared > begun && (next === -1 || cleared < next), `${name} is cleared away before the next one`)
  }
})

t.test('names a file that fails or kills its process', async (t) => {
  const passing = Array.from({ length: 12 }, (_, nth) => [`p${nth}.test.mjs`, "t.pass('well')"])
  const files = {
    // First, so that its process has no other counts to lose.
    'dies.test.mjs': "t.test('dies', () => process.kill(process.pid, 'SIGKILL'))",
    'fails.test.mjs': "t.fail('wrong')",
    ...Object.fromEntries(passing),
  }
  const { passed, failed, said } = await runAll(t, files, { most: 3 })
  t.strictSame({ passed, failed }, { passed: 25, failed: 2 })
  const text = said.join('\n')
  for (const [name] of passing) t.match(text, new RegExp(`^ok \\d+ - \\S+/${name}`, 'm'))
  t.match(text, /^ {4}not ok 2 - wrong$/m)
  t.match(text, /# Subtest: \S+dies\.test\.mjs/)
})

t.test('a spare process claims the last files', async (t) => {
  const folder = t.testdir()
  const done = JSON.stringify(join(folder, 'done'))
  const { passed, failed, errors } = await runAll(
    t,
    {
      'a.test.mjs': `import { existsSync } from 'node:fs'
        t.test('waits for the last one', async () => {
          while (!existsSync(${done})) await new Promise((next) => setTimeout(next, 20))
        })`,
      'b.test.mjs': "t.pass('well')",
      'c.test.mjs': `import { writeFileSync } from 'node:fs'
        writeFileSync(${done}, '')`,
    },
    { most: 1, spares: 1 },
  )
  t.strictSame({ passed, failed }, { passed: 5, failed: 0 })
  t.equal(new Set(errors.flatMap((line) => / runs in (\d+)$/.exec(line)?.[1] ?? [])).size, 2)
})

t.test('a run without test files fails', async (t) => {
  await t.rejects(runAll(t, {}), { message: 'there is no test file' })
})

t.test('stops a stuck process, and ends one that is done', async (t) => {
  const { passed, failed, said, errors } = await runAll(
    t,
    {
      // Hangs like an endless loop, without using CPU time.
      'hangs.test.mjs': "t.test('hangs', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))",
      'leaves.test.mjs': "t.pass('well'); setInterval(() => {}, 100)",
      'passes.test.mjs': "t.pass('well')",
    },
    // On a busy machine a process prints nothing for seconds.
    { silence: 15 },
  )
  t.strictSame({ passed, failed }, { passed: 4, failed: 1 })
  t.match(said.join('\n'), /^# Subtest: \S+hangs\.test\.mjs$/m)
  t.match(errors.join('\n'), /^a process is done and does not end \(.*Timeout.*\): .*leaves\.test\.mjs/m)
})

t.test("a run starts with the last run's slowest files", async (t) => {
  const file = (text: string) => `export default ${JSON.stringify(text)}`
  const root = t.testdir({
    test: {
      'a.test.ts': file(''),
      'b.test.ts': file('./support/browser.ts'),
      'c.test.ts': file(''),
      'd.test.ts': file('./support/api-process.ts'),
      'e.test.ts': 'startProcess(t, "worker")',
    },
  })
  const [a, b, c] = ['test/a.test.ts', 'test/b.test.ts', 'test/c.test.ts'] as const
  const [d, e] = ['test/d.test.ts', 'test/e.test.ts'] as const
  t.strictSame(await testFiles(root), [...SLOWEST, a, b, c, d, e], 'without a last run')
  await keepTimes(
    root,
    new Map([
      [a, 10],
      [c, 2_000],
      [d, 1],
      [e, 0],
    ]),
  )
  t.strictSame(await testFiles(root), [b, c, a, d, e], 'a new file comes first')
  const quick = await quickFiles(root, [c, b, e, d, a])
  t.strictSame(quick, [c, a], 'a quick run opens no browser and starts no process')
  await writeFile(join(root, 'node_modules/.cache/heliograph-tests/times.json'), '{"test/')
  t.strictSame(await testFiles(root), [...SLOWEST, a, b, c, d, e], 'a file that was cut off counts as none')
})

t.test('all files in the order of a run exist', async () => {
  await Promise.all([...SLOWEST, ...HEAVY].map((file) => access(join(ROOT, file))))
})

t.test('an unhandled error fails its file and shows where', async (t) => {
  const preload = pathToFileURL(join(ROOT, 'test/support/without-hooks.ts')).href
  const run = (line: string) => {
    const script = `import t from 'tap'
      t.test('passes', async (t) => t.ok(true))
      t.test('forgets to wait', async (t) => { t.ok(true); ${line} })`
    const args = [`--import=${preload}`, '--input-type=module', '-']
    const options = { cwd: ROOT, env: bareEnvironment(), input: script, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(process.execPath, args, options)
    return { status, text: stdout + stderr }
  }
  t.match(run(''), { status: 0, text: 'pass: 2' })
  for (const line of ["setTimeout(() => { throw Error('late') }, 20)", "void Promise.reject(Error('late'))"])
    t.match(run(line), { status: 1, text: /Error: late|not ok \d+ - late/ }, line)
})

t.test('test:one runs a file’s matching tests, and reports missing files', async (t) => {
  const one = (...args: string[]) =>
    spawnSync(process.execPath, ['test/one.ts', ...args], { cwd: ROOT, encoding: 'utf8' })
  const fitting = one(
    'test/db/validation/headers.test.ts',
    'test/workers/delivery/retry-policy.test.ts',
    '--grep',
    'three times',
  )
  t.match(fitting.stdout, /\n[1-9]\d* passed, 0 failed\n$/)
  t.equal(fitting.status, 0)
  t.match(one('test/nothing.test.ts').stderr, /^There is no test\/nothing\.test\.ts\./)
  t.equal(one().status, 1)
})

t.test('commands for tests describe themselves, and reject unknown names', async (t) => {
  const run = (file: string, word: string) =>
    spawnSync(process.execPath, [`test/${file}.ts`, word], { cwd: ROOT, encoding: 'utf8' })
  for (const file of ['one', 'chaos/main', 'mutants/run', 'upgrade/main', 'versions/main', 'bench/run']) {
    t.match(run(file, '--help'), { status: 0, stdout: /^Usage: npm run [a-z:]+ -- \[options\] / }, file)
    t.match(run(file, '--unknown'), { status: 1, stderr: /^error: unknown option '--unknown'/ }, file)
  }
  for (const file of ['one', 'chaos/main', 'mutants/run'])
    t.match(run(file, 'nowhere'), { status: 1, stderr: /nowhere/ }, file)
})

t.test("finds programs of /usr/sbin that a user's PATH leaves out", async (t) => {
  const said: string[] = []
  const argv = ['node', '-e', 'console.log(process.env.PATH)']
  await program({ stop: new AbortController().signal }, argv, (line) => said.push(line))
  t.match(said.join(), /:\/usr\/local\/sbin:\/usr\/sbin$/)
})

t.test('a server lacking something ends a run with one line', async (t) => {
  const { url, prefix } = testServer()
  const role = `${prefix}_plain`
  const admin = new Client({ connectionString: url })
  await admin.connect()
  t.teardown(async () => {
    await admin.query(`drop role "${role}"`)
    await admin.end()
  })
  await admin.query(`create role "${role}" login createdb password 'x'`)
  const DATABASE_URL = Object.assign(new URL(url), { username: role, password: 'x' }).href
  const run = (env: Record<string, string>) =>
    spawnSync(process.execPath, ['test/run.ts'], {
      cwd: ROOT,
      encoding: 'utf8',
      env: { ...bareEnvironment(), ...env },
    })
  const { stdout, status } = run({ DATABASE_URL })
  t.match(stdout, new RegExp(`^cannot run the tests: .*superuser.*${role}.*\n0 passed, 1 failed\n$`))
  t.equal(status, 1)
  const away = run({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing' })
  t.match(away.stdout, /^cannot run the tests: .*ECONNREFUSED.*\n0 passed, 1 failed\n$/)
})
