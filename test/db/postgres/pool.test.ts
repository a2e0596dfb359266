/** The pool during outages: with errors, without a response, and on a standby. */
import pg from 'pg'
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { poolConfig } from '../../../db/postgres/connect.ts'
import { isDatabaseUnavailable, openDatabase } from '../../../db/postgres/pool.ts'
import { testDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const ONE = sql.type(object({ n: number().defined() }))`select 1::int as n`

t.test("session settings of a role don't change values", async (t) => {
  const own = await testDatabase(t)
  const before = await openDatabase(own.url, { size: 1 })
  for (const setting of [
    "datestyle to 'German, DMY'",
    "timezone to 'Asia/Kolkata'",
    'standard_conforming_strings to off',
  ])
    await before.query({
      ...sql.unsafe`select`,
      sql: `do $$ begin execute format('alter role %I in database %I set ${setting.replaceAll("'", "''")}',
        current_user, current_database()); end $$`,
    })
  await before.end()
  const database = await openPool(t, own.url, { size: 1 })
  const row = object({ at: string().defined(), day: string().defined(), text: string().defined() })
  const read = sql.type(row)`
    select '2026-03-04T22:05:06.789Z'::timestamptz as at, date_trunc('day', '2026-03-04T22:05:06Z'::timestamptz) as day,
      '\\d' as text`
  const expected = { at: '2026-03-04T22:05:06.789Z', day: '2026-03-04T00:00:00.000Z', text: '\\d' }
  t.same(await database.one(read), expected)
  t.same(await database.transaction((tx) => tx.one(read)), expected)
  // The queue's own pool.
  const pool = new pg.Pool({ ...(await poolConfig(own.url)), max: 1 })
  t.teardown(() => pool.end())
  const { rows } = await pool.query("select '2026-03-04T22:05:06.789Z'::timestamptz as at")
  t.same(rows, [{ at: new Date('2026-03-04T22:05:06.789Z') }])
})

t.test('replaces connections that no longer respond', async (t) => {
  const proxy = await startDatabaseProxy(t, url)
  const database = await openPool(t, proxy.url, { size: 2, statementTimeout: 2_000 })
  const two = async () =>
    await Promise.allSettled([database.one(ONE), database.transaction((tx) => tx.one(ONE))])
  t.match(await two(), [{ status: 'fulfilled' }, { status: 'fulfilled' }])
  proxy.silence()
  for (const outcome of await two()) {
    t.equal(outcome.status, 'rejected')
    if (outcome.status === 'rejected') t.ok(isDatabaseUnavailable(outcome.reason), String(outcome.reason))
  }
  t.match(await two(), [{ status: 'fulfilled' }, { status: 'fulfilled' }])
})

t.test('treats errors about the state of the server as an outage', async (t) => {
  const database = await openPool(t, url, { size: 1 })
  const fault = async (statement: string): Promise<unknown> =>
    await database.query({ ...sql.unsafe`select`, sql: statement }).catch((error: unknown) => error)
  for (const code of ['25006', '40P01', '40001', '53100', '53300', '55P03', '57014', '57P03', '58030']) {
    const raised = await fault(`do $$ begin raise exception 'x' using errcode = '${code}'; end $$`)
    t.ok(isDatabaseUnavailable(raised), code)
  }
  for (const code of ['22P02', '23505', '42601', 'P0001']) {
    const raised = await fault(`do $$ begin raise exception 'x' using errcode = '${code}'; end $$`)
    t.notOk(isDatabaseUnavailable(raised), code)
  }
})

t.test('a rejected transaction keeps its connection', async (t) => {
  const database = await openPool(t, url, { size: 1 })
  const PID = sql.type(object({ pid: number().defined() }))`select pg_backend_pid() as pid`
  const { pid } = await database.one(PID)
  const refusal = new Error('not found')
  const refused = database.transaction(async (tx) => {
    await tx.query(sql.unsafe`create table left_behind ()`)
    throw refusal
  })
  await t.rejects(refused, refusal)
  await t.rejects(
    database.transaction((tx) => tx.query(sql.unsafe`select 1 / 0`)),
    { message: /division/ },
  )
  t.same(await database.transaction((tx) => tx.one(PID)), { pid }, 'the same connection')
  const { left } = await database.one(
    sql.type(
      object({ left: string().nullable().defined() }),
    )`select to_regclass('left_behind')::text as left`,
  )
  t.equal(left, null, 'rolled back')
  const lost = database.transaction((tx) =>
    tx.query(sql.unsafe`select pg_terminate_backend(pg_backend_pid())`),
  )
  await t.rejects(lost)
  t.not((await database.transaction((tx) => tx.one(PID))).pid, pid, 'a lost one is replaced')
})
