// Phone numbers as clients write them. DECISIONS: Numbers.

import fc from 'fast-check'
import { normalisePhone } from '../../../db/validation/phone.ts'
import t from '../../support/tap.ts'

t.test('accepts numbers that match ^\\+[1-9]\\d{7,14}$ unchanged', async (t) => {
  t.strictSame(normalisePhone('+33612345678'), { e164: '+33612345678', country: 'FR' })
  t.match(normalisePhone('+12345678'), { e164: '+12345678' })
  t.match(normalisePhone('+123456789012345'), { e164: '+123456789012345' })
})

t.test('strips spaces, - . ( ) and /', async (t) => {
  t.strictSame(normalisePhone(' +1 (212) 555-12.34/ '), { e164: '+12125551234', country: 'US' })
  t.match(normalisePhone('(+)33612345678'), { e164: '+33612345678' })
})

t.test("doesn't strip or repair anything else", async (t) => {
  const wrong = ['', '+', '33612345678', '0033612345678', '+03361234567', '+1234567', '+1234567890123456']
  const odd = [
    '++33612345678',
    '+33612345678\n',
    '+336\t12345678',
    '+336\u00a012345678',
    '+33612345678x1',
    '＋33612345678',
  ]
  for (const text of [...wrong, ...odd, '+٣٣٦١٢٣٤٥٦٧٨', '+33_612345678', 'tel:+33612345678'])
    t.equal(normalisePhone(text), null, JSON.stringify(text))
})

t.test("returns libphonenumber's country, even for shared calling codes", async (t) => {
  const known = {
    '+14165551234': 'CA',
    '+390612345678': 'IT',
    '+77012345678': 'KZ',
    '+79161234567': 'RU',
    '+38344123456': 'XK',
  }
  for (const [e164, country] of Object.entries(known)) t.strictSame(normalisePhone(e164), { e164, country })
})

t.test('accepts an unknown number without a country', async (t) => {
  for (const e164 of ['+99999999', '+870123456789', '+11111111111'])
    t.strictSame(normalisePhone(e164), { e164, country: null })
})

t.test('the pattern decides for any number, however it is separated', async () => {
  const digits = fc.stringMatching(/^[1-9]\d{7,14}$/)
  const separators = fc.stringMatching(/^[ \-.()/]{0,3}$/)
  fc.assert(
    fc.property(digits, separators, (number, separator) => {
      return normalisePhone(`+${[...number].join(separator)}`)?.e164 === `+${number}`
    }),
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => normalisePhone(text)?.e164.startsWith('+') ?? true),
  )
})

t.test('parses 100,000 characters quickly', async (t) => {
  t.match(normalisePhone(`+336${' '.repeat(100_000)}12345678`), { e164: '+33612345678' })
  for (const letter of ['+', '1', '(', '-']) t.equal(normalisePhone(letter.repeat(100_000)), null)
})
