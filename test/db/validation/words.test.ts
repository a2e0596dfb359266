/** Text from outside, made safe to store. */
import fc from 'fast-check'
import { impersonal, storableWords } from '../../../db/validation/words.ts'
import t from '../../support/tap.ts'

t.test('replaces runs of control characters with one space', async (t) => {
  t.equal(storableWords('550 5.1.1 No such user'), '550 5.1.1 No such user')
  t.equal(storableWords(' a\u0000\u0007b\r\n\u2028\u0085c\t'), 'a b c')
  t.equal(storableWords('пример 😀'), 'пример 😀')
  t.equal(storableWords('half \ud83d of a pair'), 'half \ufffd of a pair')
})

t.test('limits text to 500 code units without splitting a pair', async (t) => {
  t.equal(storableWords('x'.repeat(501)), 'x'.repeat(500))
  t.equal(storableWords(`${'x'.repeat(498)}😀y`), `${'x'.repeat(498)}😀`)
  t.equal(storableWords(`${'x'.repeat(499)}😀y`), 'x'.repeat(499))
})

t.test('removes secrets anywhere, and ignores empty ones', async (t) => {
  t.equal(storableWords('535 hunter2, yes hunter2', ['hunter2', '']), '535 ***, yes ***')
  t.equal(storableWords(`${'x'.repeat(495)}hunter2`, ['hunter2']), `${'x'.repeat(495)}***`)
})

t.test("removes marks of writing direction, which can't hide a secret", async (t) => {
  t.equal(storableWords('550 \u202egnp.exe\u202c \u2066a\u2069\u200e\u200f\u061c'), '550 gnp.exe a')
  t.equal(storableWords('535 hunt\u200eer2', ['hunter2']), '535 ***')
})

t.test('log texts have no addresses or phone numbers', async (t) => {
  t.equal(
    impersonal('454 4.7.1 <Ann@example.org>: no relay for ann@example.org,ben@b.test (+4915123456789)'),
    '454 4.7.1 <…>: no relay for … (…)',
  )
})

t.test('output is storable and idempotent', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 1_200, size: 'max' }), (text) => {
      const words = storableWords(text)
      return (
        words.isWellFormed() &&
        words.length <= 500 &&
        !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(words) &&
        storableWords(words) === words
      )
    }),
  )
})
