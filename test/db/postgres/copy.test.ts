/** Copying bytes out of the database: any bytes, any number, and errors. */
import { randomBytes } from 'node:crypto'
import { sql } from 'slonik'
import { mixed, object } from 'yup'
import { isTooSlow, type Tx } from '../../../db/postgres/pool.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const database = await openPool(t, url, { size: 1, statementTimeout: 1_000 })
await database.query(sql.unsafe`create table piece (n int, bytes bytea)`)

const row = object({ bytes: mixed<Buffer>().defined() })
const copied = async (tx: Tx): Promise<readonly Buffer[]> =>
  (await tx.any(sql.type(row)`copy (select bytes from piece order by n) to stdout (format binary)`)).map(
    ({ bytes }) => bytes,
  )

t.test('returns stored bytes in order, in and outside transactions', async (t) => {
  t.strictSame(await copied(database), [], 'none')
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const values = [all, Buffer.alloc(0), randomBytes(1), randomBytes(70_000), randomBytes(1_000_000), all]
  for (const [n, bytes] of values.entries())
    await database.query(sql.unsafe`insert into piece (n, bytes) values (${n}, ${sql.binary(bytes)})`)
  const inside = await database.transaction(copied)
  const outside = await copied(database)
  for (const [n, bytes] of values.entries()) {
    t.ok(inside[n]?.equals(bytes), `${n}: ${bytes.length} bytes`)
    t.ok(outside[n]?.equals(bytes), `${n}: ${bytes.length} bytes`)
  }
  t.equal(outside.length, values.length)
})

t.test("an error doesn't break the connection", async (t) => {
  const failing = database.any(sql.type(row)`
    copy (select case n when 3 then (1 / (n - 3))::text::bytea else bytes end from piece order by n)
    to stdout (format binary)`)
  await t.rejects(failing, { message: 'division by zero' })
  const slow = database.any(sql.type(row)`
    copy (select bytes from piece, pg_sleep(10)) to stdout (format binary)`)
  const error = await slow.catch((reason: unknown) => reason)
  t.ok(isTooSlow(error), String(error))
  t.equal((await copied(database)).length, 6)
})
