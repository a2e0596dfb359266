/** The pool over a database that goes away: loudly, without a word, or as a standby. */
import { sql } from 'slonik'
import t from 'tap'
import { number, object } from 'yup'
import { isDatabaseUnavailable, openDatabase } from '../../../db/postgres/pool.ts'
import { testDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'

const { url } = await testDatabase(t)
const ONE = sql.type(object({ n: number().defined() }))`select 1::int as n`

t.test('connections that died without a word are given up, and new ones are made', async (t) => {
  const proxy = await startDatabaseProxy(t, url)
  const database = await openDatabase(proxy.url, { size: 2, statementTimeout: 200 })
  t.teardown(() => database.end())
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

t.test('what the server says of itself, not of us, counts as its absence', async (t) => {
  const database = await openDatabase(url, { size: 1 })
  t.teardown(() => database.end())
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
