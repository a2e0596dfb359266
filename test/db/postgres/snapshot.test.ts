/** Rows as of a snapshot, by the transactions that wrote them. */
import { Client } from 'pg'
import { sql } from 'slonik'
import { openDatabase, type Tx } from '../../../db/postgres/pool.ts'
import { nameRow } from '../../../db/postgres/rows.ts'
import { seenNow, wasSeen } from '../../../db/postgres/snapshot.sql.ts'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const database = await openDatabase(url, { size: 3 })
// Its transactions stay open while others read.
const other = new Client({ connectionString: url })
await other.connect()
t.teardown(() => Promise.all([database.end(), other.end()]))
await database.query(sql.unsafe`create table things (name text, times int not null default 0)`)

const seenAt = async (tx: Tx, seen: string) =>
  (
    await tx.any(sql.type(nameRow)`
    select name from things r where ${wasSeen(sql.fragment`r`, seen)} order by name`)
  ).map(({ name }) => name)
const insert = (tx: Tx, name: string) => tx.query(sql.unsafe`insert into things values (${name})`)
const touch = (tx: Tx, name: string) =>
  tx.query(sql.unsafe`update things set times = times + 1 where name = ${name}`)

t.test('counts rows committed by the snapshot and unchanged since', async (t) => {
  for (const name of ['still', 'changed', 'changing', 'held', 'deleted']) await insert(database, name)
  await other.query('begin')
  await other.query(`insert into things values ('coming')`)
  await other.query(`update things set times = times + 1 where name = 'changing'`)
  const seen = await seenNow(database)
  t.strictSame(await seenAt(database, seen), ['changed', 'changing', 'deleted', 'held', 'still'])
  await other.query('commit')
  await insert(database, 'later')
  await touch(database, 'changed')
  await database.query(sql.unsafe`delete from things where name = 'deleted'`)
  await database.transaction((tx) => tx.query(sql.unsafe`select from things where name = 'held' for update`))
  t.strictSame(await seenAt(database, seen), ['held', 'still'])
  await database.transaction(async (tx) => {
    await touch(tx, 'still')
    t.strictSame(await seenAt(tx, seen), ['held'], 'what the asking transaction changed itself is changed')
  })
  await database.query(sql.unsafe`vacuum freeze things`)
  t.strictSame(await seenAt(database, seen), ['held'])
})

t.test('rejects an invalid snapshot', (t) => {
  for (const seen of ['', '1', '1:2', '1:x:', '1:2:3;', `1:${'9'.repeat(40)}:`])
    t.throws(() => wasSeen(sql.fragment`r`, seen), { code: 'bad_request' })
  t.end()
})
