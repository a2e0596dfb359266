/** The API as a process: settings, bytes that aren't HTTP, and the drain. */
import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTo } from '../../db/postgres/connect.ts'
import { startApi } from '../support/api-process.ts'
import { testDatabase } from '../support/database.ts'
import { rowCounts } from '../support/rows.ts'
import { anEmail, world } from '../support/service.ts'
import t, { type Test } from '../support/tap.ts'
import { startProcess, until } from '../support/worker.ts'

const { url } = await testDatabase(t)
/** The process of the tests that don't load or kill it. */
const shared = await startApi(t, url)

/** Sends bytes to it. @returns everything it sends before closing the connection. */
const say = async (text: string): Promise<string> =>
  await new Promise((resolve, reject) => {
    let heard = ''
    const socket = connect(Number(new URL(shared.base).port), '127.0.0.1', () => socket.write(text))
    socket.on('data', (chunk) => {
      heard += chunk.toString()
    })
    socket.once('end', () => resolve(heard))
    socket.once('error', reject)
  })

t.test('bytes that aren’t HTTP get an error in the envelope', async (t) => {
  for (const text of [
    'nonsense\r\n\r\n',
    'GET /v1/contacts/\u00fc@example.com HTTP/1.1\r\nHost: x\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(70_000)}\r\n\r\n`,
    'POST /v1/emails HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  ]) {
    t.match(await say(text), /^HTTP\/1\.1 400 [\s\S]*\{"error":\{"code":"bad_request"/, text.slice(0, 40))
  }
  t.match(await say('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'), /^HTTP\/1\.1 405 [\s\S]*"method_not_allowed"/)
  const close = 'Connection: close\r\n\r\n'
  t.match(await say(`GET /health HTTP/1.1\r\n${close}`), /^HTTP\/1\.1 200 /)
  t.match(await say(`GET /health HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\n${close}`), /^HTTP\/1\.1 200 /)
  t.match(await say(`GET /v1/contacts?a=1 HTTP/1.1\r\nHost: no host at all\r\n${close}`), /^HTTP\/1\.1 401 /)
})

t.test('stray bytes after a request don’t replace its response', async (t) => {
  const heard = await say('GET /ready HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n')
  t.match(heard, /^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 400 /)
})

t.test('SIGTERM under load finishes every request and exits with 0', async (t) => {
  const { service, team } = await world(t)
  const api = await startApi(t, service.url)
  const answered: string[] = []
  const broken: string[] = []
  let routedUntil = Number.POSITIVE_INFINITY
  const client = async (): Promise<void> => {
    while (performance.now() < routedUntil) {
      try {
        const { status, body } = await api.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
        if (status === 201) answered.push(body.id)
        else broken.push(String(status))
      } catch (error) {
        broken.push(String((error as Error).cause))
      }
    }
  }
  const clients = Array.from({ length: 20 }, client)
  await until('it is busy', () => answered.length > 50)
  api.kill('SIGTERM')
  // The time in which a platform routes its clients elsewhere.
  routedUntil = performance.now() + 200
  await Promise.all(clients)
  t.equal(await api.exited, 0)
  t.strictSame(broken, [])
  const { emails, jobs } = await rowCounts(service, team.id)
  t.strictSame([emails, jobs], [answered.length, answered.length])
})

const PROCESS = join(import.meta.dirname, '../../db/process')

async function scratch(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'main-test-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Returns the directory where a process that preloads this file caches compiled code. */
const cacheOf = (preload: string, env: Record<string, string> = {}): string =>
  execFileSync(process.execPath, ['--import', preload, '-p', `require('node:module').getCompileCacheDir()`], {
    env,
    encoding: 'utf8',
  }).trim()

t.test('a killed process has cached its compiled code', async (t) => {
  const directory = await scratch(t)
  const api = await startApi(t, (await testDatabase(t)).url, { NODE_COMPILE_CACHE: directory })
  api.kill('SIGKILL')
  await api.exited
  const kept = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((each) =>
    each.isFile(),
  )
  t.ok(kept.length > 300, `${kept.length} modules`)
})

t.test('compiled code is cached in the installation or NODE_COMPILE_CACHE', async (t) => {
  const preload = join(PROCESS, 'preload.js')
  const modules = join(PROCESS, '../../node_modules/.cache/heliograph')
  t.ok(cacheOf(preload).startsWith(modules), 'nobody but the owner of the installation writes there')
  const directory = await scratch(t)
  t.ok(cacheOf(preload, { NODE_COMPILE_CACHE: directory }).startsWith(directory))
  t.equal(cacheOf(preload, { NODE_DISABLE_COMPILE_CACHE: '1' }), 'undefined')
  await mkdir(join(directory, 'db/process'), { recursive: true })
  for (const name of ['preload.js', 'node-version.js'])
    await cp(join(PROCESS, name), join(directory, 'db/process', name))
  await writeFile(join(directory, 'package.json'), '{"type": "module"}')
  await writeFile(join(directory, 'node_modules'), 'no directory')
  t.equal(cacheOf(join(directory, 'db/process/preload.js')), 'undefined')
})

t.test('processes load version 3 of zod', (t) => {
  const script = "console.log(import.meta.resolve('zod'))"
  const argv = ['--import', join(PROCESS, 'preload.js'), '--input-type=module', '-e', script]
  t.match(execFileSync(process.execPath, argv, { env: {}, encoding: 'utf8' }), /\/zod\/v3\//)
  t.end()
})

t.test("connections have their process's name unless the URL names them", async (t) => {
  const client = await connectTo(url)
  t.teardown(() => client.end())
  const names = async (): Promise<string[]> => {
    const { rows } = await client.query<{ name: string }>(
      `select distinct application_name as name from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    )
    return rows.map(({ name }) => name).filter((name) => name !== 'heliograph listen')
  }
  await until('web has named its connections', async () => (await names()).join() === 'heliograph web')
  shared.kill('SIGTERM')
  t.equal(await shared.exited, 0, 'SIGTERM ends it with 0')
  const worker = await startProcess(t, 'workers/main.ts', {
    DATABASE_URL: url,
    SMTP_URL: 'smtp://127.0.0.1:9',
  })
  await until('the worker has named its', async () => (await names()).join() === 'heliograph worker')
  worker.kill()
  await worker.exited
  await startApi(t, `${url}?application_name=mine`)
  await until('the URL’s name wins', async () => (await names()).join() === 'mine')
})
