/**
 * `npm start` for a new user, in a separate checkout. The printed requests must work, a second start and a
 * port in use must behave as in README, kill -9 must lose nothing, and nothing may remain afterwards.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmod, cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { runningPostgres } from '../db/dev/postgres.ts'
import { databaseUrl, testDatabase, testServer } from './support/database.ts'
import { bareEnvironment } from './support/environment.ts'
import { runProgram } from './support/programs.ts'
import t from './support/tap.ts'
import { until } from './support/worker.ts'

const ROOT = join(import.meta.dirname, '..')
/** What `npm start` and `npm run admin` start with. */
const PRELOAD = ['--import', './db/process/preload.js']
const SOURCES = ['api', 'workers', 'db', 'test', 'package.json']
// Below the range of ephemeral ports, so that no other process gets one by chance.
const port = (): string => String(randomInt(20_000, 30_000))

type Started = {
  npm: ChildProcess
  ended: Promise<number | string>
  said(): string
  kill(signal: NodeJS.Signals): void
}

const checkout = await mkdtemp(join(tmpdir(), 'check out-'))
await chmod(checkout, 0o711)
const DATA = join(checkout, '.data')
for (const name of SOURCES) await cp(join(ROOT, name), join(checkout, name), { recursive: true })
await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'))
const ENVIRONMENT = { ...bareEnvironment(), HOME: process.env.HOME, TMPDIR: process.env.TMPDIR }
const started = new Set<Started>()
t.teardown(async () => {
  for (const each of started) each.kill('SIGTERM')
  await Promise.all([...started].map((each) => each.ended))
  await rm(checkout, { recursive: true, force: true })
})

/** Runs `npm start`. */
const npmStart = (env: Record<string, string>): Started => run(env, 'npm', ['start'])

/**
 * Runs the program of `npm start` directly, for cases where it can't start. npm itself would double the time.
 */
const cannotStart = (env: Record<string, string>): Started =>
  run(env, process.execPath, [...PRELOAD, 'test/start.ts'])

function run(env: Record<string, string>, command: string, args: readonly string[]): Started {
  let said = ''
  const npm = spawn(command, args, {
    cwd: checkout,
    env: { ...ENVIRONMENT, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  for (const stream of [npm.stdout, npm.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = once(npm, 'close').then(([code, signal]) => (signal ?? code) as number | string)
  const kill = (signal: NodeJS.Signals): void => void process.kill(-(npm.pid ?? 0), signal)
  const service = { npm, ended, said: () => said, kill }
  started.add(service)
  void ended.then(() => started.delete(service))
  return service
}

const TAKEN = /is in use by another program/

/** Starts it and waits for its last line. Retries with other ports if one of these is in use. */
async function ready(env: Record<string, string> = {}, attempts = 3): Promise<Started> {
  const sandbox = { SANDBOX_SMTP_PORT: port(), SANDBOX_HTTP_PORT: port(), SANDBOX_WHATSAPP_PORT: port() }
  const service = npmStart({ PORT: port(), ...sandbox, ...env })
  const isUp = (): boolean => /^ready$/m.test(service.said())
  let over = false
  void service.ended.then(() => {
    over = true
  })
  await until('npm start is ready', () => isUp() || over, 180)
  if (isUp()) return service
  if (attempts > 1 && TAKEN.test(service.said())) return ready(env, attempts - 1)
  throw new Error(`npm start ended (${await service.ended}): ${service.said()}`)
}

type Team = { id: string; name: string }
type Sent = { team_id: string; id: string; status: string }
type Pasted<B> = { status: number; body: B }

/** Sends the printed requests. @returns their responses. */
async function paste({
  said,
}: Started): Promise<
  [email: Pasted<Sent>, whatsapp: Pasted<{ data: Sent[] }>, own: Pasted<{ data: Sent[] }>]
> {
  const requests = [...said().matchAll(/^curl -s (\S+) \\\n((?: {2}-H '[^']+' \\\n)+) {2}-d '([^']+)'$/gm)]
  const answers = await Promise.all(
    requests.map(async ([, url = '', headers = '', body = '']) => {
      const pairs = [...headers.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name = '', value = '']) => [
        name,
        value,
      ])
      const answer = await fetch(url, { method: 'POST', headers: Object.fromEntries(pairs), body })
      return { status: answer.status, body: await answer.json() }
    }),
  )
  return answers as Awaited<ReturnType<typeof paste>>
}

const origin = ({ said }: Started): string => /^API {6}(\S+)\/v1$/m.exec(said())?.[1] ?? 'none printed'
const key = ({ said }: Started): string => /^API key {2}(hg_\S+)$/m.exec(said())?.[1] ?? 'none printed'

/** Runs `npm run -s admin -- …`, which finds the running service by itself. */
const admin = <T>(...args: string[]): Promise<T> => adminOn<T>({}, ...args)

/** Runs the CLI with settings. */
async function adminOn<T>(settings: Record<string, string>, ...args: string[]): Promise<T> {
  const { stdout } = await runProgram(
    process.execPath,
    [...PRELOAD, join(checkout, 'db/admin/main.ts'), ...args],
    { cwd: checkout, env: { ...ENVIRONMENT, ...settings } },
  )
  return JSON.parse(stdout)
}

const read = async (url: string): Promise<unknown> => (await fetch(url)).json()

const status = async (noun: 'email' | 'whatsapp', id: string): Promise<string> =>
  (await admin<Sent>(noun, 'show', sent.team_id, id)).status

let service: Started
let sent: { team_id: string; id: string }
const inbox = port()

t.test('the printed requests are delivered, and the CLI shows it', async (t) => {
  service = await ready({ SANDBOX_HTTP_PORT: inbox })
  t.equal(service.said().trimEnd().split('\n').at(-1), 'ready')
  const [email, whatsapp, own] = await paste(service)
  t.match(email, {
    status: 201,
    body: { status: 'queued', from_address: 'Heliograph Demo <hello@demo.test>' },
  })
  for (const each of [whatsapp, own]) t.match(each, { status: 201, body: { data: [{ status: 'queued' }] } })
  sent = email.body
  const { team_id, id } = sent
  const [message] = whatsapp.body.data
  if (!message) throw new Error('no message was accepted')
  const inInbox = async (): Promise<{ id: string }[]> =>
    (await read(`http://localhost:${inbox}/messages`)) as { id: string }[]
  await until('the email is in the inbox', async () => (await inInbox()).length > 0)
  // Each call of the CLI starts a process, so the rows are read until then.
  const rows = new Client({ connectionString: (await runningPostgres(DATA)) ?? '' })
  await rows.connect()
  const has = async (text: string): Promise<boolean> => (await rows.query(text)).rows.length > 0
  await until('the email is delivered', () => has(`select from emails where status = 'delivered'`))
  const isRead = (number: string) => () =>
    has(`select from whatsapp_messages where status = 'read' and phone_number_id is ${number}`)
  await until('the message is read', isRead('null'))
  await until(
    'that of the other team too, from its own number',
    isRead("not distinct from '100000000000004'"),
  )
  await rows.end()
  t.match(await admin('number', 'check', 'acme'), {
    ...{ display_phone_number: '+1 555-555-0108', subscribed: false, missing: [/--subscribe/] },
  })
  t.equal(await status('whatsapp', message.id), 'read')
  t.match(await admin<Sent>('email', 'show', team_id, id), {
    ...{ id, status: 'delivered', provider_message_id: /./ },
    events: [{ kind: 'sent' }, { kind: 'delivered' }],
  })
  const [arrived] = await inInbox()
  const shown = await read(`http://localhost:${inbox}/messages/${arrived?.id}`)
  t.match(shown, { subject: 'Hello from Heliograph', html: /<h1>It works/, text: /It works/ })
})

t.test("README's request is accepted once, then replayed", async (t) => {
  const [, script = ''] = /```sh\n(curl [^`]*)```/.exec(await readFile(join(ROOT, 'README.md'), 'utf8')) ?? []
  const local = script.replace('http://localhost:3000', origin(service))
  const run = async () => {
    const { stdout } = await runProgram(
      'bash',
      ['-c', local.replace('curl -s', "curl -s -w '\\n%{http_code}'")],
      { env: { ...ENVIRONMENT, HELIOGRAPH_KEY: key(service) } },
    )
    const [body = '', status] = stdout.split(/\n(?=\d+$)/)
    return { status: Number(status), body: JSON.parse(body) }
  }
  const first = await run()
  t.match(first, { status: 201, body: { status: 'queued', idempotency_key: 'hello-1' } })
  t.match(await run(), { status: 200, body: { id: first.body.id } })
})

t.test('/docs sends from the domain of the demo team', async (t) => {
  const page = await (await fetch(`${origin(service)}/docs`)).text()
  t.match(page, 'hello@demo.test')
  t.notMatch(page, '{{domain}}')
})

t.test('the printed link signs in to the dashboard, once', async (t) => {
  const [link = ''] = /http:\S+\/dashboard\/login\/\S+/.exec(service.said()) ?? []
  const press = async () =>
    await fetch(link, { method: 'POST', redirect: 'manual', headers: { 'Sec-Fetch-Site': 'same-origin' } })
  t.match((await press()).headers.get('set-cookie'), /^heliograph=/)
  t.equal((await press()).status, 404)
})

t.test("CLI links use the service's address without a setting", async (t) => {
  const login = (settings: Record<string, string> = {}) =>
    adminOn<{ url: string }>(settings, 'login', 'me@example.com', '--operator')
  t.equal((await fetch((await login()).url)).status, 200)
  t.match(await login({ PORT: '4400' }), { url: /^http:\/\/localhost:4400\// })
  t.match(await login({ PUBLIC_URL: 'https://mail.example.com' }), { url: /^https:\/\/mail\.example\.com\// })
})

t.test('only listens on this machine, and generates its secrets', async (t) => {
  const { port: taken } = new URL(origin(service))
  const others = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  for (const { address } of others.filter(({ internal, family }) => !internal && family === 'IPv4'))
    await t.rejects(fetch(`http://${address}:${taken}/health`), address)
  for (const name of ['secret-key', 'whatsapp-app-secret', 'whatsapp-verify-token', 'smtp-report-token'])
    t.match(await readFile(join(DATA, name), 'utf8'), /^[\w-]{43}\n$/, name)
  t.match(await readFile(join(ROOT, '.gitignore'), 'utf8'), /^\.env$/m, 'what it is set with is not in git')
})

t.test('a port in use ends it with one line', async (t) => {
  const taken = cannotStart({ PORT: new URL(origin(service)).port })
  t.equal(await taken.ended, 1)
  t.match(
    taken.said(),
    /port \d+ is in use by another program or another npm start\. Stop it, or set PORT to another port$/m,
  )
})

t.test('invalid settings end it with one line before anything starts', async (t) => {
  const refused = async (env: Record<string, string>, line: RegExp) => {
    const attempt = cannotStart({ PORT: port(), ...env })
    t.equal(await attempt.ended, 1)
    t.match(attempt.said(), line)
    t.notMatch(attempt.said(), /^ready|starting PostgreSQL|^ {4}at /m)
  }
  const { url, prefix } = testServer()
  const refusals: [env: Record<string, string>, line: RegExp][] = [
    [{ DATABASE_URL: 'banana' }, /^ {2}DATABASE_URL must be a postgres:\/\/ URL\. Percent-encode /m],
    [{ SECRET_KEY: ' '.repeat(20) }, /^ {2}SECRET_KEY must not consist of spaces$/m],
    [{ EMAIL_PROVIDER: 'pigeon' }, /^ {2}EMAIL_PROVIDER must be smtp or ses$/m],
    [
      { DATABASE_URL: databaseUrl(url, `${prefix}_missing`) },
      /^cannot start: the server rejects DATABASE_URL: .*does not exist$/m,
    ],
  ]
  await Promise.all(refusals.map(([env, line]) => refused(env, line)))
})

t.test('each database keeps its own demo team and key', async (t) => {
  const { url } = await testDatabase(t)
  const first = await ready({ DATABASE_URL: url })
  t.not(key(first), key(service))
  const second = cannotStart({ DATABASE_URL: url, PORT: port() })
  t.equal(await second.ended, 1, 'two of them would share workers')
  t.match(
    second.said(),
    /^another npm start of this checkout uses this database\. Stop it, or set DATABASE_URL/m,
  )
  first.kill('SIGTERM')
  await first.ended
  const again = await ready({ DATABASE_URL: url })
  t.equal(key(again), key(first))
  again.kill('SIGTERM')
  await again.ended
  t.equal((await admin<Team[]>('team', 'list')).length, 2, 'its two demo teams')

  const [team] = await adminOn<Team[]>({ DATABASE_URL: url }, 'team', 'list')
  t.equal(team?.name, 'Demo')
  const add = async (database: string, id: string) =>
    await adminOn<object>({ DATABASE_URL: database }, 'domain', 'add', id, 'a.test')
  t.match(await add(url, team?.id ?? ''), { name: 'a.test' }, 'with the key of npm start, which has used it')
  const { url: foreign } = await testDatabase(t)
  const stranger = await adminOn<Team>({ DATABASE_URL: foreign }, 'team', 'create', '--name', 'Stranger')
  const said = await add(foreign, stranger.id).catch(({ stderr }: { stderr: string }) => stderr)
  t.equal(said, 'SECRET_KEY is not set. Use the same value as your web and worker processes.\n')
})

t.test('a second start reports the first and exits', async (t) => {
  const second = npmStart({ PORT: port() })
  t.equal(await second.ended, 1)
  t.match(second.said(), /^already running \(pid \d+\) from .*\. Stop it, or set DATABASE_URL and PORT/m)
  t.notMatch(second.said(), /^ready|^ {4}at /m)
  t.equal((await paste(service))[0].status, 201, 'the first goes on')
})

t.test('restarts PostgreSQL after a kill', async (t) => {
  const answers = async (): Promise<boolean> => {
    try {
      return (await fetch(`${origin(service)}/ready`)).ok
    } catch (error) {
      throw new Error(`npm start said: ${service.said().slice(-3_000)}`, { cause: error })
    }
  }
  const pid = async (): Promise<number> =>
    Number.parseInt(await readFile(join(DATA, 'data/postmaster.pid'), 'utf8'), 10)
  process.kill(await pid(), 'SIGKILL')
  await until('the service has noticed', async () => !(await answers()), 90)
  await until('it is back', answers, 90)
  t.match(service.said(), /^PostgreSQL has stopped\. Starting it again$/m)
})

t.test('starts again with its data after kill -9', async (t) => {
  service.kill('SIGKILL')
  await service.ended
  const before = key(service)
  service = await ready()
  t.equal(key(service), before)
  t.equal(await status('email', sent.id), 'delivered')
  t.equal((await admin<Sent[]>('email', 'list', sent.team_id)).length, 3)
})

t.test('SIGTERM to npm stops everything', async (t) => {
  t.ok(await runningPostgres(DATA))
  process.kill(service.npm.pid ?? 0, 'SIGTERM')
  // Its pipes close when the last process with them ends.
  await service.ended
  t.equal(await runningPostgres(DATA), null)
  await t.rejects(fetch(origin(service)))
})

t.test("reports that .data isn't writable, with its purpose", async (t) => {
  await rm(DATA, { recursive: true })
  await writeFile(DATA, '')
  const refused = cannotStart({ PORT: port() })
  t.equal(await refused.ended, 1)
  t.match(
    refused.said(),
    /\.data cannot be written to \(E\w+\)\. .* without DATABASE_URL also its database\./,
  )
})
