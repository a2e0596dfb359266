// Mailboxes as clients write them. DECISIONS: From address.

import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { formatMailbox, parseAddress, parseMailbox } from '../../../db/validation/address.ts'
import { address, printable } from '../../support/addresses.ts'
import t from '../../support/tap.ts'

const name = fc
  .oneof(
    fc.string({ unit: 'grapheme' }),
    fc.stringMatching(/^[ -~]{1,30}$/),
    fc.constantFrom('Zoë', '株式会社', '"', '\\', 'a, b', 'a  b'),
  )
  .map((name) => name.trim())
  .filter((name) => name !== '' && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name))

t.test('a mailbox is a@b.c, <a@b.c>, Name <a@b.c> or "Quoted Name" <a@b.c>', async (t) => {
  const named = {
    Zoë: 'Zoë <a@b.co>',
    "O'Brien & Co. 7": "O'Brien & Co. 7<a@b.co>",
    'Jo Do': '\t Jo   Do  <a@b.co> ',
  }
  const quoted = {
    'Do, "J" \\': '"Do, \\"J\\" \\\\" <a@b.co>',
    '<x@y.co>': '"<x@y.co>"<a@b.co>',
    '株  式': '" 株  式 " <a@b.co>',
  }
  for (const [name, text] of Object.entries({ ...named, ...quoted }))
    t.strictSame(parseMailbox(text), { name, address: 'a@b.co', domain: 'b.co' })
  for (const text of ['a@b.co', ' a@b.co ', '<a@b.co>', '"" <a@b.co>', '"  " <a@b.co>'])
    t.strictSame(parseMailbox(text), { name: null, address: 'a@b.co', domain: 'b.co' })
})

t.test('rejects groups, lists, routes, comments and control characters', async (t) => {
  const more = [
    'A <a@b.co>, B <c@d.co>',
    'A <a@b.co> x',
    '<a@b.co> (c)',

    'G: A <a@b.co>;',
  ]
  const angles = [
    '<@x.co:a@b.co>',
    '<<a@b.co>>',
    'A <a@b.co',
    'A a@b.co>',
    '<>',
    'A <>',
    'A < a@b.co >',
    '<a@b.co><c@d.co>',
    '>',
  ]
  const quotes = [
    '"A <a@b.co>',
    'A" <a@b.co>',
    '"A" B <a@b.co>',
    '"A"" <a@b.co>',
    '"A\\" <a@b.co>',

    'a@b.co <a@b.co>',
  ]
  const controls = [
    'A\r\nBcc: x <a@b.co>',
    '"A\n" <a@b.co>',
    'A\0 <a@b.co>',
    'A\tB <a@b.co>',
    '"A\\\r" <a@b.co>',
    'A\u0085 <a@b.co>',
  ]
  for (const text of [
    ...more,
    ...angles,
    ...quotes,
    ...controls,
    'A\u2028 <a@b.co>',
    'A\ud83d <a@b.co>',
    '',
  ]) {
    t.equal(parseMailbox(text), null, printable(text))
  }
})

t.test('quotes names in from_address only if RFC 5322 requires it', async (t) => {
  const shown = {
    'Jo Do': 'Jo Do',
    Zoë: 'Zoë',
    "O'B!#$%&*+-/=?^_`{|}~": "O'B!#$%&*+-/=?^_`{|}~",
    'Dr. X': '"Dr. X"',
  }
  const quoted = {
    'Zoë, Ltd': '"Zoë, Ltd"',
    'a "b" \\': '"a \\"b\\" \\\\"',
    'a  b': '"a  b"',
    'a@b': '"a@b"',
    '[a]': '"[a]"',
  }
  t.equal(formatMailbox({ name: null, address: 'a@b.co', domain: 'b.co' }), 'a@b.co')
  for (const [name, phrase] of Object.entries({
    ...shown,
    ...quoted,
    'a:b;c': '"a:b;c"',
    '(a)': '"(a)"',
    '<a>': '"<a>"',
  })) {
    t.equal(formatMailbox({ name, address: 'a@b.co', domain: 'b.co' }), `${phrase} <a@b.co>`)
  }
})

t.test('a formatted mailbox parses and formats to itself', async () => {
  fc.assert(
    fc.property(fc.option(name), address, (name, given) => {
      const parsed = parseAddress(given)
      if (parsed === null) return given.length > 200
      const mailbox = { name, address: parsed.address, domain: parsed.domain }
      return isDeepStrictEqual(parseMailbox(formatMailbox(mailbox)), mailbox)
    }),
    { numRuns: 2000 },
  )
})

t.test('a parsed mailbox has one address and no control characters', async () => {
  const scrap = fc.constantFrom(
    'a@b.co',
    '<',
    '>',
    '"',
    '\\',
    ',',
    ' ',
    'A',
    '\r\n',
    '\0',
    ':',
    ';',
    '(',
    ')',
    '@',
    '.',
    'é',
  )
  fc.assert(
    fc.property(fc.array(scrap, { maxLength: 12 }), (scraps) => {
      const mailbox = parseMailbox(scraps.join(''))
      if (mailbox === null) return true
      const line = formatMailbox(mailbox)
      return !/\p{Cc}/u.test(line) && /^[^\s<>,:;"\\()@]+@[^\s<>,:;"\\()@]+$/.test(mailbox.address)
    }),
    { numRuns: 5000 },
  )
})
