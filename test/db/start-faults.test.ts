/**
 * The errors of processes that can't start: one line with the name of the setting, without a stack trace. All
 * processes end by the same function, so a wrong password shows it for each, and the other errors are tested
 * in this process or with one entry.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { readApiSettings } from '../../api/config.ts'
import { migrate } from '../../db/migrate.ts'
import { isSameDatabase } from '../../db/postgres/connect.ts'
import { openDatabase } from '../../db/postgres/pool.ts'
import { openSecrets } from '../../db/process/canary.ts'
import { startFault } from '../../db/process/shutdown.ts'
import { startDatabase } from '../../db/start.ts'
import { readWorkerSettings } from '../../workers/config.ts'
import { adminCli } from '../support/admin.ts'
import { databaseUrl, emptyDatabase, testDatabase, testServer } from '../support/database.ts'
import { bareEnvironment, SECRET_KEY } from '../support/environment.ts'
import { silentLog } from '../support/log.ts'
import { procfileOptions } from '../support/procfile.ts'
import t from '../support/tap.ts'

const ROOT = join(import.meta.dirname, '../..')
const ENTRIES = ['api/main.ts', 'workers/main.ts', 'db/migrate.ts']

/** Runs an entry that must fail. @returns its output. */
const failing = async (entry: string, settings: Record<string, string>): Promise<string> =>
  await new Promise((resolve, reject) => {
    const env = { ...bareEnvironment(), SECRET_KEY, SMTP_URL: 'smtp://127.0.0.1:9', PORT: '0', ...settings }
    const argv = [...procfileOptions(entry), join(ROOT, entry)]
    execFile(process.execPath, argv, { env, timeout: 60_000 }, (error, stdout, stderr) =>
      error?.code === 1 && stdout === ''
        ? resolve(stderr)
        : reject(new Error(`${entry}: ${stdout}${stderr}`)),
    )
  })

/** Opens the database like web and worker processes do. @returns the last line of a process that fails with it. */
const faultOf = (settings: { DATABASE_URL: string; DATABASE_DIRECT_URL?: string }) =>
  startDatabase(settings, { size: 1 }, silentLog).then(
    async ({ database }) => database.end().then(() => 'it started'),
    (error: unknown) => `${startFault(error)}\n`,
  )

/** Reads the settings of web and worker processes, which must fail. @returns the lines of the processes. */
const settingsFaults = (settings: Record<string, string>) =>
  [readApiSettings, readWorkerSettings].map((read) => {
    try {
      return JSON.stringify(read({ SMTP_URL: 'smtp://127.0.0.1:9', ...settings }))
    } catch (error) {
      return String(startFault(error))
    }
  })

/** Runs a program from the checkout without our settings. */
const run = (program: string, args: string[]) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((resolve) =>
    execFile(program, args, { cwd: ROOT, env: bareEnvironment() }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    ),
  )

/** The test server's URL with other credentials. */
function urlAs(change: { username?: string; password?: string; database?: string }): string {
  const { url, prefix } = testServer()
  const { database, ...login } = change
  return Object.assign(new URL(databaseUrl(url, database ?? `${prefix}_template`)), login).href
}

const REFUSED = {
  'a wrong password': urlAs({ password: 'hunter2' }),
  'an unknown user': urlAs({ username: 'stranger' }),
  'a missing database': urlAs({ database: 'no_such_database' }),
}

for (const [what, DATABASE_URL] of Object.entries(REFUSED)) {
  const entries = what === 'a wrong password' ? ENTRIES : []
  t.test(`${what} prints one line with DATABASE_URL`, async (t) => {
    const ended = entries.map((entry) => failing(entry, { DATABASE_URL }))
    for (const said of await Promise.all([...ended, faultOf({ DATABASE_URL })])) {
      t.match(said, /^cannot start: the server rejects DATABASE_URL: [^\n]+\n$/)
      t.notMatch(said, /hunter2/)
    }
    const cli = adminCli({ DATABASE_URL })
    const calls = [
      ['plan', 'list'],
      ['queue', 'redrive', 'deliver-email'],
    ]
    for (const call of calls) {
      const said = await cli.fault(call)
      t.match(said, /^the server at \S+:\d+ rejects DATABASE_URL: /)
      t.notMatch(said, /hunter2/)
    }
  })
}

t.test('reports an unreachable server in one line', async (t) => {
  const places = {
    socket: 'postgres://u:hunter2@/name?host=/nowhere',
    address: 'postgres://u:hunter2@255.255.255.255/name',
  }
  for (const [place, DATABASE_URL] of Object.entries(places)) {
    const said = await faultOf({ DATABASE_URL })
    t.match(said, /^cannot start: the database is unreachable \(connect [^\n]+\)\n$/, place)
    if (place === 'address') t.equal(await failing('db/migrate.ts', { DATABASE_URL }), said)
    const line = await adminCli({ DATABASE_URL }).fault(['plan', 'list'])
    t.match(line, /^Could not reach the database at \S+: connect .*or set DATABASE_URL\.$/, place)
  }
})

t.test("reports the database's full disk at start and CLI", async (t) => {
  const { url } = await testDatabase(t)
  const admin = new Client({ connectionString: url })
  await admin.connect()
  t.teardown(() => admin.end())
  // A trigger raises the error, because a full disk would stop other tests.
  await admin.query(`
    create function full_disk() returns trigger language plpgsql as $$ begin
      raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`)
  for (const table of ['process_marks', 'teams'])
    await admin.query(`create trigger full_disk before insert on ${table} execute function full_disk()`)
  const fault = await failing('workers/main.ts', { DATABASE_URL: url, LOG_LEVEL: 'fatal' })
  t.match(fault, /^cannot start: the disk of the database is full: could not extend [^\n]+\n$/)
  const line = await adminCli({ DATABASE_URL: url }).fault(['team', 'create', '--name', 'Northwind'])
  t.match(line, /^the disk of the database at \S+ is full: could not extend /)
  t.notMatch(line, 'npm start')
})

t.test('reports the missing grant to identify the server', async (t) => {
  const { url } = await emptyDatabase(t)
  const name = new URL(url).pathname.slice(1)
  const role = `${name}_role`
  const admin = new Client({ connectionString: url })
  await admin.connect()
  t.teardown(() => admin.end())
  await admin.query(`create role ${role} login password 'x'`)
  t.teardown(async () => await admin.query(`drop owned by ${role} cascade; drop role ${role}`))
  await admin.query(`grant create on schema public to ${role}; grant create on database ${name} to ${role}`)
  const DATABASE_URL = Object.assign(new URL(url), { username: role, password: 'x' }).href
  await migrate(DATABASE_URL)
  await admin.query('revoke execute on function pg_control_system() from public')
  const line =
    /denies a permission to the role of DATABASE_URL: permission denied for function pg_control_system\. To fix this, run `grant execute .*\n$/
  t.match(await failing('api/main.ts', { DATABASE_URL, LOG_LEVEL: 'fatal' }), line)
})

t.test("reports a role that doesn't own the schema", async (t) => {
  const { url } = await testDatabase(t)
  const role = `${new URL(url).pathname.slice(1)}_other`
  const admin = new Client({ connectionString: url })
  await admin.connect()
  t.teardown(() => admin.end())
  await admin.query(`create role ${role} login password 'hunter2'`)
  t.teardown(async () => await admin.query(`drop role ${role}`))
  const DATABASE_URL = Object.assign(new URL(url), { username: role, password: 'hunter2' }).href
  const line =
    /denies a permission to the role of DATABASE_URL: permission .*\. To fix this, use the role that runs the migrations/
  t.match(await failing('workers/main.ts', { DATABASE_URL }), line)
  t.match(await adminCli({ DATABASE_URL }).fault(['plan', 'list']), line)
})

t.test('a DATABASE_DIRECT_URL of another database stops every process', async (t) => {
  const [{ url }, { url: other }] = [await testDatabase(t), await emptyDatabase(t)]
  const settings = { DATABASE_URL: url, DATABASE_DIRECT_URL: other, LOG_LEVEL: 'error' }
  for (const said of [await failing('db/migrate.ts', settings), await faultOf(settings)])
    t.match(
      said,
      /^cannot start, .*:\n {2}DATABASE_DIRECT_URL and DATABASE_URL lead to different databases .*\n$/,
    )
  t.match(await adminCli({ DATABASE_URL: other }).fault(['plan', 'list']), /is not migrated/)
  const direct = `${url}?application_name=direct`
  t.equal(await isSameDatabase(url, direct), true)
  t.equal(await isSameDatabase(url, `${url}?options=-c%20search_path%3Dpgboss`), false, 'another schema')
})

t.test('rejects a SECRET_KEY of spaces', async (t) => {
  const settings = { DATABASE_URL: testServer().url, SECRET_KEY: ' '.repeat(32) }
  const line = /SECRET_KEY must not consist of spaces/
  for (const said of settingsFaults(settings)) t.match(said, line)
  t.match(await adminCli(settings).fault(['plan', 'list']), line)
})

t.test("doesn't start with another database's SECRET_KEY", async (t) => {
  const { url } = await testDatabase(t)
  const database = await openDatabase(url, { size: 1 })
  await openSecrets(database, { SECRET_KEY })
  await database.end()
  const settings = { DATABASE_URL: url, SECRET_KEY: 'f07a3d9be2186c45', LOG_LEVEL: 'error' }
  const fault = await failing('api/main.ts', settings)
  t.match(fault, /^cannot start, .*\n {2}SECRET_KEY isn't the key that this database was used with\. /)
})

t.test('rejects a guessable SECRET_KEY', async (t) => {
  const settings = { DATABASE_URL: testServer().url, SECRET_KEY: 'password12345678' }
  for (const said of settingsFaults(settings)) t.match(said, /SECRET_KEY is too easy to guess/)
})

const OLDER_NODE = `
  import { registerHooks } from 'node:module'
  Object.defineProperty(process.versions, 'node', { value: '20.20.2' })
  const bare = { url: 'data:text/javascript,export default {}', shortCircuit: true }
  registerHooks({
    resolve: (name, context, next) =>
      name === 'node:module' && context.parentURL?.endsWith('.js') ? bare : next(name, context),
  })
`

t.test('reports an outdated Node version', async (t) => {
  const procfile = await readFile(join(ROOT, 'Procfile'), 'utf8')
  const commands = procfile
    .trim()
    .split('\n')
    // Without exec, the shell would get the signals instead of Node.
    .map((line) => line.replace(/^\w+: (?:[A-Z_]+=\S+ )*exec /, '').split(' '))
  t.strictSame(commands.map((command) => command.at(-1)).toSorted(), ENTRIES.toSorted())
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  commands.push(scripts.admin.replace(/^exec /, '').split(' '))
  // Simulates an old version, and a node:module without the current names. The check is the real one.
  const older = `data:text/javascript,${encodeURIComponent(OLDER_NODE)}`
  for (const [program, ...args] of commands) {
    t.equal(program, 'node')
    const { code, stdout, stderr } = await run(process.execPath, ['--import', older, ...args])
    t.match({ code, stdout }, { code: 1, stdout: /^$/ })
    t.match(stderr, /^Heliograph needs Node 24 or later, and this is v/)
    t.notMatch(stderr, /DATABASE_URL/)
  }
})
