/** The checks of the database at the start of a process and in `GET /ready`. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { sql } from 'slonik'
import { openDatabase } from '../../db/postgres/pool.ts'
import { openConsumer } from '../../db/queue/boss.ts'
import { startDatabase } from '../../db/start.ts'
import { emptyDatabase, testDatabase, testServer } from '../support/database.ts'
import { startService } from '../support/service.ts'
import t from '../support/tap.ts'

const silent = pino({ level: 'silent' })

/** Runs statements on a database. */
async function change(url: string, ...statements: string[]): Promise<void> {
  const database = await openDatabase(url, { size: 1 })
  for (const statement of statements) await database.query({ ...sql.unsafe`select`, sql: statement })
  await database.end()
}

/** Returns the error of a process that starts on this database, or null. */
async function refusal(url: string): Promise<string | null> {
  try {
    const { database } = await startDatabase({ DATABASE_URL: url }, { size: 1 }, silent)
    await database.end()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const NOT_MIGRATED =
  /the database is not migrated to this version \(\S+\.sql is missing\): run `node db\/migrate\.ts`/

t.test('starts on a newer schema, not on an older one', async (t) => {
  const service = await startService(t)
  t.equal((await service.call('GET', '/ready')).status, 200)
  t.equal(await refusal(service.url), null)

  await change(service.url, 'insert into schema_migrations (number, file) values (9999, $$9999-later.sql$$)')
  t.equal(await refusal(service.url), null, 'a schema of later code')
  t.equal((await service.call('GET', '/ready')).status, 200)

  await change(service.url, 'delete from schema_migrations where number = 5')
  t.match(await refusal(service.url), NOT_MIGRATED)
  const { status, headers, body } = await service.call('GET', '/ready')
  t.match({ status, body }, { status: 503, body: { error: { code: 'unavailable', message: NOT_MIGRATED } } })
  t.ok(headers.get('retry-after'))

  t.match(await refusal((await emptyDatabase(t)).url), NOT_MIGRATED)
})

t.test("a read-only database stops a process, which isn't ready", async (t) => {
  const { url } = await testDatabase(t)
  const name = new URL(url).pathname.slice(1)
  const service = await startService(t, { url })
  const lost = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`
  await change(url, `alter database "${name}" set default_transaction_read_only = on`, lost)
  t.match(await refusal(url), /the database doesn't accept writes. It is a standby or set to read only/)
  const { status, body } = await service.call('GET', '/ready')
  t.match({ status, body }, { status: 503, body: { error: { message: /doesn't accept writes/ } } })
})

t.test("only reports a queue that isn't migrated as such", async (t) => {
  const { url } = await testDatabase(t)
  const fault = (as: string) =>
    openConsumer(as, { connections: 1, onError: () => {} }).then(
      () => null,
      (error: Error) => error.message,
    )
  const role = `stranger_${randomBytes(6).toString('hex')}`
  await change(url, `create role ${role} login password 'x'`)
  t.teardown(() => change(testServer().url, `drop role ${role}`))
  const stranger = Object.assign(new URL(url), { username: role, password: 'x' }).href
  t.match(await fault(stranger), /^permission denied/)
  await change(url, 'update pgboss.version set version = 1')
  t.match(await fault(url), /DATABASE_URL: this database is not migrated\. Run `node db\/migrate\.ts`/)
})

t.test('warns about settings that can lose accepted messages', async (t) => {
  const { url } = await testDatabase(t)
  const name = new URL(url).pathname.slice(1)
  await change(url, `alter database "${name}" set synchronous_commit = off`)
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const { database } = await startDatabase({ DATABASE_URL: url }, { size: 1 }, log)
  await database.end()
  const warned = lines
    .map((line) => JSON.parse(line))
    .filter(({ setting }) => setting === 'synchronous_commit')
  t.match(warned, [
    { level: 40, msg: /runs with synchronous_commit off: .*can lose the most recently accepted messages$/ },
  ])
})

t.test('warns about an unreachable DATABASE_DIRECT_URL and starts without it', async (t) => {
  const { url } = await testDatabase(t)
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const direct = Object.assign(new URL(url), { port: '9' }).href
  const settings = { DATABASE_URL: url, DATABASE_DIRECT_URL: direct }
  const { database } = await startDatabase(settings, { size: 1 }, log)
  await database.end()
  t.match(lines.map((line) => JSON.parse(line)).at(-1), { msg: /^DATABASE_DIRECT_URL is unreachable/ })
})
