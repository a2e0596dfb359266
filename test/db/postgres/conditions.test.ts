/** Conditions of a query, built from filters. */
import { sql } from 'slonik'
import { allOf } from '../../../db/postgres/conditions.ts'
import t from '../../support/tap.ts'

t.test('joins set conditions in order, and drops unset ones', async (t) => {
  const unset: string | undefined = undefined
  const built = allOf(sql.fragment`a = ${1}`, unset && sql.fragment`b`, false, sql.fragment`c = ${'x'}`)
  t.equal(built.sql.replace(/\$\w+/g, '?'), 'a = ? and c = ?')
  t.strictSame(built.values, [1, 'x'])
})

t.test('matches every row without conditions', async (t) => {
  t.equal(allOf().sql, 'true')
  t.equal(allOf(false, undefined).sql, 'true')
})
