/**
 * Everything works behind a real PgBouncer in both modes with its default settings, and each email is sent
 * once. Skipped with a message if PgBouncer isn't installed.
 */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { migrate } from '../../../db/migrate.ts'
import { type Database, openDatabase } from '../../../db/postgres/pool.ts'
import { createReplies } from '../../../db/postgres/replies.ts'
import { countRow } from '../../../db/postgres/rows.ts'
import { migrationFiles } from '../../../db/schema.sql.ts'
import { startApi } from '../../support/api-process.ts'
import { emptyDatabase, testDatabase } from '../../support/database.ts'
import { pgbouncerMissing, startPgbouncer } from '../../support/pgbouncer.ts'
import { openPool } from '../../support/pool.ts'
import { anEmail, type startService, type TestTeam, world } from '../../support/service.ts'
import { messageIdOf, type SmtpSink, startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startProcess, until } from '../../support/worker.ts'

const skip = (await pgbouncerMissing()) ?? false
const MODES = ['session', 'transaction'] as const
const SENDS = 60
const setting = object({ value: string().defined() })

type Direct = { DATABASE_DIRECT_URL?: string }

/** Starts API and worker as processes behind PgBouncer, with a team that sends to a sink. */
async function startBoth(t: Tap, mode: (typeof MODES)[number], direct: boolean) {
  const { service, team } = await world(t)
  const pooled = await startPgbouncer(t, service.url, mode)
  const sink = await startSmtpSink(t)
  const env: Direct = direct ? { DATABASE_DIRECT_URL: service.url } : {}
  const api = await startApi(t, pooled, env)
  await startProcess(t, 'workers/main.ts', { DATABASE_URL: pooled, SMTP_URL: sink.url, ...env })
  return { service, team, sink, api }
}

type Tap = Parameters<typeof startService>[0]
type Api = Awaited<ReturnType<typeof startApi>>

async function sendAll(api: Api, team: TestTeam): Promise<number[]> {
  const sends = Array.from({ length: SENDS }, async () => {
    const { status } = await api.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
    return status
  })
  return [...new Set(await Promise.all(sends))]
}

const allSent = async (database: Database): Promise<boolean> =>
  (await database.oneFirst(sql.type(countRow)`select count(*) from emails where status = 'queued'`)) === 0

const upsert = (api: Api, team: TestTeam) =>
  api.call('POST', '/v1/contacts/bulk', { key: team.key, body: { contacts: [{ email: 'a@example.org' }] } })

const distinct = (sink: SmtpSink): number => new Set(sink.messages().map(messageIdOf)).size

for (const mode of MODES) {
  t.test(`sends every email once and rejects nothing in ${mode} mode`, { skip }, async (t) => {
    const { service, team, sink, api } = await startBoth(t, mode, false)
    t.strictSame(await sendAll(api, team), [201])
    await until('all is sent', () => allSent(service.database))
    t.strictSame([sink.messages().length, distinct(sink)], [SENDS, SENDS])
    t.match(await upsert(api, team), { status: 200, body: { data: [{ index: 0, id: /./ }] } })
    t.equal((await api.call('GET', '/ready')).status, 200)
  })
}

t.test('work waits for its own connections behind a full pooler', { skip }, async (t) => {
  const { url } = await testDatabase(t)
  const pooled = await startPgbouncer(t, url, 'session', 'default_pool_size = 2')
  const database = await openPool(t, pooled, { size: 4 })
  const slow = sql.type(countRow)`select 1 as count from pg_sleep(0.2)`
  const found = await Promise.all([1, 2, 3, 4].map(() => database.transaction((tx) => tx.oneFirst(slow))))
  t.strictSame(found, [1, 1, 1, 1])
})

t.test('three migrations through a pool run each file once', { skip }, async (t) => {
  const { url } = await emptyDatabase(t)
  const pooled = await startPgbouncer(t, url, 'transaction')
  const lines: string[] = []
  await Promise.all([1, 2, 3].map(() => migrate(pooled, (line) => lines.push(line))))
  const files = await migrationFiles()
  t.strictSame(lines.sort(), [
    ...files.map(({ file }) => `applied ${file}`),
    'loaded the default plan catalog',
  ])
  const database = await openPool(t, url, { size: 1 })
  const held = sql.type(countRow)`
    select count(*) from pg_locks where locktype = 'advisory' and database =
      (select oid from pg_database where datname = current_database())`
  t.equal(await database.oneFirst(held), 0, 'and no lock stays behind')
})

t.test('in transaction mode limits apply within a transaction', { skip }, async (t) => {
  const { url } = await testDatabase(t)
  const database = await openDatabase(await startPgbouncer(t, url, 'transaction'), {
    size: 1,
    statementTimeout: 4_000,
    lockTimeout: 2_000,
  })
  t.teardown(() => database.end())
  const show = (name: string) => sql.type(setting)`select current_setting(${name}) as value`
  await database.transaction(async (tx) => {
    t.equal(await tx.oneFirst(show('statement_timeout')), '4s')
    t.equal(await tx.oneFirst(show('lock_timeout')), '2s')
    t.equal(await tx.oneFirst(show('idle_in_transaction_session_timeout')), '30s')
  })
  t.equal(await database.oneFirst(show('statement_timeout')), '0')
})

t.test("transaction mode ignores the role's datestyle", { skip }, async (t) => {
  const { url } = await testDatabase(t)
  const direct = await openDatabase(url, { size: 1 })
  await direct.query(sql.unsafe`
    do $$ begin execute format('alter role %I in database %I set datestyle to ''German, DMY''',
      current_user, current_database()); end $$`)
  await direct.end()
  const pooled = await startPgbouncer(t, url, 'transaction')
  const database = await openPool(t, pooled, { size: 2 })
  const read = sql.type(setting)`select '2026-03-04T05:06:07Z'::timestamptz as value`
  const found = await Promise.all([
    ...[1, 2, 3].map(() => database.oneFirst(read)),
    ...[1, 2, 3].map(() => database.transaction((tx) => tx.oneFirst(read))),
  ])
  t.strictSame(new Set(found), new Set(['2026-03-04T05:06:07.000Z']))
})

t.test('processes listen at DATABASE_DIRECT_URL, or poll', { skip }, async (t) => {
  // Heartbeats follow, so after some seconds the latest query of a listener is another one.
  const listeners = sql.type(countRow)`
    select count(*) from pg_stat_activity where datname = current_database()
      and application_name = 'heliograph listen' and query ~ '^(listen heliograph|select 1)'`
  const { service, api, team } = await startBoth(t, 'transaction', true)
  // Two belong to the processes, one to the service in the test.
  await until('both listen', async () => (await service.database.oneFirst(listeners)) === 3)
  t.equal((await upsert(api, team)).status, 200)
  const replies = createReplies(null, { poll: 50 })
  t.equal(
    await replies.ask('nobody rings', { send: async () => {}, read: async () => 'found', timeout: 5_000 }),
    'found',
  )
  await replies.close()
})
