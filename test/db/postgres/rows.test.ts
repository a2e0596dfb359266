/**
 * Many values as rows of one statement arrive unchanged under their names. Returned rows must have all
 * columns, and null only where the schema allows it.
 */
import { sql } from 'slonik'
import { array, mixed, number, string } from 'yup'
import type { Database } from '../../../db/postgres/pool.ts'
import { row, rowsOf } from '../../../db/postgres/rows.ts'
import { isSurelyValid } from '../../../db/validation/valid.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const database = await openPool(t, url, { size: 1 })

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

/** Values by type, with PostgreSQL's text for each. */
const SPELT: Readonly<Record<string, readonly (readonly [value: unknown, text: string])[]>> = {
  bool: [
    [true, 'true'],
    [false, 'false'],
    ['yes', 'true'],
  ],
  int2: [
    [-32_768, '-32768'],
    [32_767, '32767'],
    ['7', '7'],
  ],
  int4: [
    [-2_147_483_648, '-2147483648'],
    [2_147_483_647, '2147483647'],
  ],
  int8: [
    [-1, '-1'],
    [-4_294_967_297, '-4294967297'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [Number.MIN_SAFE_INTEGER, '-9007199254740991'],
    ['9223372036854775807', '9223372036854775807'],
  ],
  float8: [
    [-0.1, '-0.1'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [1e300, '1e+300'],
  ],
  text: [
    ['', ''],
    ['NULL', 'NULL'],
    ['ä€😀 "{\\}",\n', 'ä€😀 "{\\}",\n'],
    ['€'.repeat(50_000), '€'.repeat(50_000)],
    [7, '7'],
  ],
  json: [
    [{ b: 1, a: '€' }, '{"b":1,"a":"€"}'],
    [[], '[]'],
  ],
  jsonb: [[{ b: 1, a: '€' }, '{"a": "€", "b": 1}']],
  bytea: [
    [Buffer.from([0, 255]), '\\x00ff'],
    [Buffer.alloc(100_000, 1), `\\x${'01'.repeat(100_000)}`],
  ],
  uuid: [
    ['0190A1B2-0000-7000-8000-00000000000f', '0190a1b2-0000-7000-8000-00000000000f'],
    ['0190a1b200007000800000000000000f', '0190a1b2-0000-7000-8000-00000000000f'],
  ],
  timestamptz: [
    ['2026-01-31T12:00:00.250Z', '2026-01-31 12:00:00.25+00'],
    ['1999-12-31T23:59:59.999Z', '1999-12-31 23:59:59.999+00'],
    [new Date('2400-02-29T00:00:00Z'), '2400-02-29 00:00:00+00'],
    ['2026-01-31T12:00:00.123456Z', '2026-01-31 12:00:00.123456+00'],
    ['infinity', 'infinity'],
  ],
  date: [['2026-01-31', '2026-01-31']],
}

const spelt = async (database: Database, type: string, values: readonly unknown[]) => {
  const items = values.map((value) => ({ value }))
  return database.anyFirst(sql.type(row({ text: string().nullable() }))`
    select value::text as text from ${rowsOf('r', { value: type }, items)}`)
}

t.test('values are the same in binary and in text', async (t) => {
  const database = await openPool(t, `${url}?options=-c%20TimeZone%3DUTC`, { size: 1 })
  for (const [type, pairs] of Object.entries(SPELT)) {
    const [values, texts] = [pairs.map(([value]) => value), pairs.map(([, text]) => text)]
    for (const [index, value] of values.entries())
      t.strictSame(await spelt(database, type, [value]), [texts[index]], `${type} ${index}`)
    t.strictSame(await spelt(database, type, [null, ...values, undefined]), [null, ...texts, null], type)
  }
  const { values } = rowsOf('r', TYPES, [ITEM, { ...ITEM, word: null }])
  t.ok(
    values.every((value) => Buffer.isBuffer(value)),
    'nothing is sent as text',
  )
})

t.test('wrong values are rejected', async (t) => {
  const wrong = {
    ...{ int2: 32_768, int4: -2_147_483_649, int8: '9223372036854775808', text: 'a\0b', bool: 2, uuid: 'x' },
    ...{ jsonb: '\0', timestamptz: '2026-02-30T00:00:00.000Z', float8: 'x' },
  }
  for (const [type, value] of Object.entries(wrong)) await t.rejects(spelt(database, type, [value]), type)
  const long = '0190a1b2-0000-7000-8000-0000000000011'
  await t.rejects(spelt(database, 'uuid', [long]))
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
