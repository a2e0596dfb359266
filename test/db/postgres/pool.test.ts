/** The pool during outages: with errors, without a response, and on a standby. */
import assert from 'node:assert/strict'
import pg from 'pg'
import { sql } from 'slonik'
import { number, string } from 'yup'
import { poolConfig } from '../../../db/postgres/connect.ts'
import { LAST_UNPREPARED, lastOf } from '../../../db/postgres/joined.ts'
import { isDatabaseUnavailable, openDatabase, type Tx } from '../../../db/postgres/pool.ts'
import { row } from '../../../db/postgres/rows.ts'
import { testDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { openPool } from '../../support/pool.ts'
import t, { type Test } from '../../support/tap.ts'

const { url } = await testDatabase(t)
const ONE = sql.type(row({ n: number() }))`select 1::int as n`

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
  const read = sql.type(row({ at: string(), day: string(), text: string() }))`
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

t.test("treats errors about the server's state as an outage", async (t) => {
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
  const PID = sql.type(row({ pid: number() }))`select pg_backend_pid() as pid`
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
    sql.type(row({ left: string().nullable() }))`select to_regclass('left_behind')::text as left`,
  )
  t.equal(left, null, 'rolled back')
  const lost = database.transaction((tx) =>
    tx.query(sql.unsafe`select pg_terminate_backend(pg_backend_pid())`),
  )
  await t.rejects(lost)
  t.not((await database.transaction((tx) => tx.one(PID))).pid, pid, 'a lost one is replaced')
})

/** Opens a pool with one connection through a proxy. A transaction has prepared BEGIN and COMMIT on it. */
async function openJoining(t: Test) {
  const proxy = await startDatabaseProxy(t, url)
  const database = await openPool(t, proxy.url, { size: 1 })
  await database.query(sql.unsafe`create table if not exists joined (n int primary key)`)
  await database.query(sql.unsafe`truncate joined`)
  await database.transaction((tx) => tx.one(ONE))
  return { proxy, database, stored: () => database.anyFirst(sql.type(N)`select n from joined order by n`) }
}
const N = row({ n: number() })
const insert = (n: number, name = 'insert_joined') =>
  sql.prepared(name, N)`insert into joined values (${n}) returning n`
const insertLast = (n: number) => insert(n, lastOf('insert_joined'))

t.test('BEGIN and COMMIT need no additional round trip', async (t) => {
  const { proxy, database, stored } = await openJoining(t)
  const trips = (work: (tx: Tx) => Promise<unknown>) => proxy.during(() => database.transaction(work))
  t.equal(await trips((tx) => tx.one(insert(1))), 2, 'BEGIN')
  t.equal(await trips(async (tx) => [await tx.one(insert(2)), await tx.one(insertLast(3))]), 2, 'both')
  const unprepared = { ...sql.unsafe`insert into joined values (${4})`, name: LAST_UNPREPARED }
  t.equal(await trips(async (tx) => [await tx.one(insert(5)), await tx.query(unprepared)]), 2, 'not prepared')
  const PREPARED = sql.type(
    N,
  )`select count(*)::int as n from pg_prepared_statements where statement like '%values ($1)'`
  t.equal(await database.oneFirst(PREPARED), 0)
  t.equal(await trips(async () => {}), 0, 'nothing to do')
  t.equal(await trips((tx) => tx.query(sql.unsafe`select 1; select 2`)), 3, 'two statements at once')
  t.same(await stored(), [1, 2, 3, 4, 5])
})

t.test('a failed first or last statement keeps its connection', async (t) => {
  const { database, stored } = await openJoining(t)
  await database.query(insert(1))
  const duplicate = { code: '23505' }
  const fails = (work: (tx: Tx) => Promise<unknown>) =>
    database.transaction(work).catch((error) => error.cause ?? error)
  t.match(await fails((tx) => tx.one(insert(1))), duplicate)
  t.match(await fails(async (tx) => [await tx.one(insert(2)), await tx.one(insertLast(1))]), duplicate)
  const unsent = {
    ...insertLast(3),
    values: [{ toPostgres: () => assert.fail('not encoded') }],
  } as unknown as ReturnType<typeof insertLast>
  t.match(await fails(async (tx) => [await tx.one(insert(2)), await tx.one(unsent)]), {
    message: 'not encoded',
  })
  const PID = sql.type(N)`select pg_backend_pid() as n where pg_current_xact_id_if_assigned() is null`
  t.ok(await database.oneFirst(PID))
  await database.query(insert(4))
  t.same(await stored(), [1, 4])
})

// It would be committed by itself.
t.test('no statement runs if its BEGIN fails', async (t) => {
  const { database, stored } = await openJoining(t)
  await database.query(sql.unsafe`deallocate all`)
  await t.rejects(
    database.transaction((tx) => tx.one(sql.unsafe`insert into joined values (${1}) returning n`)),
  )
  t.same(await stored(), [])
})

t.test('a transaction fails if it continues after its last statement', async (t) => {
  const { database, stored } = await openJoining(t)
  const late = database.transaction(async (tx) => [
    await tx.one(ONE),
    await tx.one(insertLast(1)),
    await tx.one(insert(2)),
  ])
  await t.rejects(late, /committed before/)
  const thrown = database.transaction(async (tx) => {
    await tx.one(insert(2))
    await tx.one(insertLast(3))
    throw new Error('too late')
  })
  await t.rejects(thrown, /committed before/)
  t.same(await stored(), [1, 2, 3])
})
