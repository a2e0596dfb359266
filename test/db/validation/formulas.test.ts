/** Cells of CSV files can't start formulas, and imports restore the original. */
import { guardFormulas, unguardFormulas } from '../../../db/validation/formulas.ts'
import { isFormula, piecesOf } from '../../support/spreadsheets.ts'
import t from '../../support/tap.ts'

t.test('escapes the start of a formula on every line', async (t) => {
  for (const [cell, guarded] of [
    ["Ana;=cmd|'/C calc'!A0", "Ana;'=cmd|'/C calc'!A0"],
    ['=1', "'=1"],
    ['+15551234567', "'+15551234567"],
    ['a, -1\t@b\n+c', "a, '-1\t'@b\n'+c"],
    ['a;" \u00a0＝b', 'a;" \u00a0\'＝b'],
    ['＋a;－b,＠c', "'＋a;'－b,'＠c"],
    ["';=a", "';'=a"],
    ['\ta', "'\ta"],
    ['\t=a', "'\t'=a"],
  ] as const)
    t.strictSame([guardFormulas(cell), unguardFormulas(guarded)], [guarded, cell])
  for (const cell of [
    '',
    'a',
    '42',
    '12.5',
    '2026-01-31T09:00:00.000Z',
    'a=b',
    'a - b',
    "'a",
    'ana+x@example.com',
  ])
    t.strictSame([guardFormulas(cell), unguardFormulas(cell)], [cell, cell])
})

t.test('escaped text can be restored', async (t) => {
  const alphabet = [...'=+-@＝＋－＠;,\t\r\n "\'a\u00a0\u3000\u200b\ufeff\u0001']
  let seed = 7
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % below
  }
  for (let round = 0; round < 20_000; round += 1) {
    const cell = Array.from({ length: next(9) }, () => alphabet[next(alphabet.length)]).join('')
    const guarded = guardFormulas(cell)
    if (unguardFormulas(guarded) !== cell || piecesOf(guarded).some(isFormula))
      t.fail(JSON.stringify({ cell, guarded }))
  }
  t.equal(guardFormulas("'=a"), "''=a")
})

t.test('runs in linear time', async (t) => {
  const began = performance.now()
  for (const part of ['\t', ' ', '"', "'", ';', '=', "'=", '; ', '\t='])
    unguardFormulas(guardFormulas(`${part.repeat(500_000)}x`))
  t.ok(performance.now() - began < 10_000)
})
