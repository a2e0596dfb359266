/**
 * The embedded PostgreSQL of `npm start` and `npm test` in its own directories: created, restarted, killed in
 * every way that leaves something behind, started twice, and inaccessible to its user.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client } from 'pg'
import { runningPostgres, startPostgres } from '../../../db/dev/postgres.ts'
import { runProgram } from '../../support/programs.ts'
import t, { type Test } from '../../support/tap.ts'

// Outlives the single tests of this file.
const whole: Test = t
const ROOT = process.getuid?.() === 0
const DEV = new URL('../../../db/dev/postgres.ts', import.meta.url).href
const SETTINGS = { fsync: 'off' }

async function rows(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

/** A directory with a space in its name that PostgreSQL's user can enter. */
async function scratch(t: Test): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'dev test-'))
  await chmod(parent, 0o711)
  t.teardown(() => rm(parent, { recursive: true, force: true }))
  return join(parent, 'postgres')
}

let seed = ''

/** Like `scratch`, with a stopped cluster. It is a copy of the first one, because initdb is slow. */
async function made(t: Test): Promise<string> {
  const directory = await scratch(t)
  await runProgram('cp', ['-a', seed, directory])
  return directory
}

async function start(t: Test, directory: string, more: { port?: number; elsewhere?: string } = {}) {
  const postgres = await startPostgres({ directory, settings: SETTINGS, ...more })
  t.teardown(() => postgres.stop())
  return postgres
}

/** Starts the server in another process. @returns the process and the server's URL. */
async function startElsewhere(t: Test, directory: string) {
  const program = `
    const { startPostgres } = await import(${JSON.stringify(DEV)})
    const { url } = await startPostgres({ directory: ${JSON.stringify(directory)}, settings: { fsync: 'off' } })
    process.stdout.write(url + '\\n')
    setInterval(() => {}, 1000)`
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => owner.kill('SIGKILL'))
  const [url] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string]
  return { owner, url }
}

async function killHard(owner: { kill(signal: 'SIGKILL'): boolean } & NodeJS.EventEmitter): Promise<void> {
  owner.kill('SIGKILL')
  await once(owner, 'exit')
}

const postmaster = async (home: string) =>
  Number.parseInt(await readFile(join(home, 'data/postmaster.pid'), 'utf8'), 10)

t.test('creates a UTF-8 server on loopback with a password', async (t) => {
  const directory = await scratch(t)
  t.equal(await runningPostgres(directory), null, 'nothing runs before')
  const { url, stop } = await start(t, directory)
  t.match(url, /^postgres:\/\/heliograph:[0-9a-f]{48}@127\.0\.0\.1:\d+\/heliograph$/)
  const setting = (name: string) => `current_setting('${name}') as ${name}`
  const names = 'server_encoding timezone max_connections listen_addresses unix_socket_directories'.split(' ')
  t.strictSame(await rows(url, `select ${names.map(setting).join(', ')}`), [
    {
      server_encoding: 'UTF8',
      timezone: 'UTC',
      max_connections: '200',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
    },
  ])
  const locale = 'select datlocprovider, datlocale from pg_database where datname = current_database()'
  t.strictSame(await rows(url, locale), [{ datlocprovider: 'b', datlocale: 'C.UTF-8' }])
  t.strictSame(await rows(url, "select lower('ÉÖЖ') as lower"), [{ lower: 'éöж' }])
  await t.rejects(rows(url.replace(/[0-9a-f]{48}/, 'guess'), 'select 1'), { code: '28P01' }, 'no password')
  t.equal((await stat(join(directory, 'password'))).mode & 0o777, 0o600)
  t.equal((await stat(join(directory, 'server.json'))).mode & 0o777, 0o600)
  t.equal(await runningPostgres(directory), url, 'the CLI finds it')
  await stop()
  await stop()
  t.equal(await runningPostgres(directory), null, 'and no longer once it has stopped')
  seed = join(await scratch(whole), '..', 'seed')
  await runProgram('cp', ['-a', directory, seed])
})

t.test('a restart keeps the data, with fsync by default', async (t) => {
  const directory = await made(t)
  const first = await start(t, directory)
  t.strictSame(await rows(first.url, 'show fsync'), [{ fsync: 'off' }])
  await rows(first.url, 'create table kept as select 42 as n')
  await first.stop()
  const second = await startPostgres({ directory })
  t.teardown(() => second.stop())
  t.strictSame(await rows(second.url, 'select n from kept'), [{ n: 42 }])
  t.strictSame(await rows(second.url, 'show fsync'), [{ fsync: 'on' }])
})

t.test('repeats an initdb that was killed', async (t) => {
  const directory = await scratch(t)
  await mkdir(join(directory, 'data.new/base'), { recursive: true })
  await writeFile(join(directory, 'data.new/PG_VERSION'), '18\n')
  const { url } = await start(t, directory)
  t.strictSame(await rows(url, 'select 1 as one'), [{ one: 1 }])
})

t.test('a server that was killed starts again with its data', async (t) => {
  const directory = await made(t)
  const first = await start(t, directory)
  await rows(first.url, 'create table kept as select 42 as n')
  const file = join(directory, 'data/postmaster.pid')
  process.kill(await postmaster(directory), 'SIGKILL')
  await first.stop()
  t.ok((await stat(file)).isFile(), 'its lock file stays behind')
  const second = await start(t, directory)
  t.strictSame(await rows(second.url, 'select n from kept'), [{ n: 42 }])

  const lock = await readFile(file, 'utf8')
  await second.stop()
  const stranger = spawn('sleep', ['300'], { stdio: 'ignore' })
  t.teardown(() => stranger.kill())
  await writeFile(file, lock.replace(/^\d+/, String(stranger.pid)))
  t.equal(await runningPostgres(directory), null)
  const third = await start(t, directory)
  t.strictSame(await rows(third.url, 'select n from kept'), [{ n: 42 }], 'even if another has its pid')
  t.equal(stranger.exitCode ?? stranger.signalCode, null, 'which is left alone')
})

t.test('rejects a second start on the same directory', async (t) => {
  const directory = await made(t)
  const { owner, url } = await startElsewhere(t, directory)
  const refusal = new RegExp(`already running \\(pid ${owner.pid}\\).*Stop it, or set DATABASE_URL and PORT`)
  await t.rejects(startPostgres({ directory }), { message: refusal })
  t.strictSame(await rows(url, 'select 1 as one'), [{ one: 1 }], 'and does the first no harm')
  t.equal(await runningPostgres(directory), url)

  const orphan = await postmaster(directory)
  await rows(url, 'create table kept as select 42 as n')
  await killHard(owner)
  t.strictSame(await rows(url, 'select 1 as one'), [{ one: 1 }], 'its server outlives it')
  const next = await start(t, directory)
  t.strictSame(await rows(next.url, 'select n from kept'), [{ n: 42 }], 'the next start takes over')
  t.not(await postmaster(directory), orphan)
  // Also empty for a zombie, which remains if process 1 doesn't reap it.
  const command = await readFile(`/proc/${orphan}/cmdline`, 'utf8').catch(() => '')
  t.equal(command, '', 'and leaves no orphan')
})

t.test('servers of different directories run at the same time', async (t) => {
  const [one, other] = await Promise.all([start(t, await made(t)), start(t, await made(t))])
  t.not(new URL(one.url).port, new URL(other.url).port)
  t.strictSame(await rows(one.url, 'select 1 as n'), await rows(other.url, 'select 1 as n'))
  const port = Number(new URL(one.url).port)
  await t.rejects(start(t, await made(t), { port }), { message: `port ${port} is in use` })
})

t.test("root uses another directory if PostgreSQL can't enter it", async (t) => {
  const directory = await scratch(t)
  const elsewhere = join(directory, '..', 'elsewhere')
  const closed = join(directory, '..', 'closed')
  await mkdir(elsewhere, { mode: 0o711 })
  await mkdir(closed, { mode: 0o700 })
  const inside = join(closed, 'postgres')
  const first = await start(t, inside, { elsewhere })
  if (ROOT) t.match(first.home, new RegExp(`^${elsewhere}/heliograph-[0-9a-f]{12}$`))
  else t.equal(first.home, inside, 'an ordinary user is its own account')
  t.equal(await runningPostgres(inside), first.url, 'the CLI finds it where it asks')
  await rows(first.url, 'create table kept as select 42 as n')
  await first.stop()
  await chmod(closed, 0o711)
  const second = await start(t, inside, { elsewhere })
  t.equal(second.home, first.home, 'data stay where they are')
  t.strictSame(await rows(second.url, 'select n from kept'), [{ n: 42 }])
  await second.stop()

  await chmod(closed, 0o700)
  await rm(inside, { recursive: true })
  const third = await start(t, inside, { elsewhere })
  t.strictSame(await rows(third.url, "select to_regclass('kept') as kept"), [{ kept: null }], 'it is deleted')
})

t.test('rejects a replacement directory of another user', async (t) => {
  const directory = await scratch(t)
  const closed = join(directory, '..', 'closed')
  const elsewhere = join(directory, '..', 'elsewhere')
  await mkdir(elsewhere, { mode: 0o711 })
  await mkdir(closed, { mode: 0o700 })
  const inside = join(closed, 'postgres')
  const first = await start(t, inside, { elsewhere })
  await first.stop()
  if (!ROOT) return t.equal(first.home, inside, 'an ordinary user needs none')
  await chmod(first.home, 0o777)
  await t.rejects(start(t, inside, { elsewhere }), {
    message: "isn't a directory that only root can write to",
  })
})
