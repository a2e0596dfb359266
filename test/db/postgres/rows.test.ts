/**
 * Many values as rows of one statement arrive unchanged under their names. Returned rows must have all
 * columns, and null only where the schema allows it.
 */
import { sql } from 'slonik'
import { array, mixed, number, string } from 'yup'
import { row, rowsOf } from '../../../db/postgres/rows.ts'
import { isSurelyValid } from '../../../db/validation/valid.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const TYPES = {
  ...{ id: 'uuid', word: 'text', map: 'json', at: 'timestamptz', bytes: 'bytea' },
  ...{ share: 'float8', yes: 'bool', to: 'jsonb' },
}
const ITEM = {
  ...{ id: '0190a1b2-0000-7000-8000-000000000001', word: 'it\'s "x", {y}\\', map: { b: [1], a: null } },
  ...{ at: new Date('2026-01-31T12:00:00Z'), bytes: Buffer.from([0, 255, 92, 34]), share: 0.5, yes: true },
  ...{ to: ['a@example.com'] },
}
const NONE: (typeof ITEM)[] = []

t.test('dates, bytes, JSON and nulls are unchanged', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 1 })
  const nothing = Object.fromEntries(Object.keys(TYPES).map((column) => [column, null]))
  const rows = await database.any(
    sql.unsafe`select *, map::text as spelt from ${rowsOf('r', TYPES, [ITEM, { ...nothing, id: ITEM.id }])}`,
  )
  t.match(rows[0], { ...ITEM, at: ITEM.at.toISOString(), spelt: '{"b":[1],"a":null}' })
  t.match(rows[1], { ...nothing, id: ITEM.id })
  t.match(
    await database.one(sql.type(row({ count: number() }))`
    select count(*) as count from ${rowsOf('r', TYPES, NONE)}`),
    { count: 0 },
  )
  t.equal(rowsOf('r', TYPES, [ITEM, ITEM]).sql, rowsOf('r', TYPES, NONE).sql)
})

t.test('requires every column, and null only if allowed', async (t) => {
  const schema = row({
    name: string().oneOf(['a', 'b']),
    note: string().nullable(),
    list: array(string()),
    map: mixed<{ n: number }>().nullable(),
  })
  const fine = { name: 'a', note: null, list: ['x'], map: null } as const
  t.ok(isSurelyValid(schema, fine), 'without yup’s machinery')
  const { name }: { name: 'a' | 'b' } = schema.validateSync(fine, { strict: true })
  t.equal(name, 'a')
  const { note: _, ...missing } = fine
  for (const odd of [missing, { ...fine, name: null }, { ...fine, name: 'c' }, { ...fine, list: [null] }])
    t.throws(() => schema.validateSync(odd, { strict: true }), JSON.stringify(odd))
})
