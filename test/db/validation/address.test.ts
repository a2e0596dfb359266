// Addresses as clients write them. DECISIONS: Email addresses, Identity.

import fc from 'fast-check'
import {
  addressIdentity,
  domainToAscii,
  parseAddress,
  parsedAddress,
  parseMailbox,
  toWireAddress,
} from '../../../db/validation/address.ts'
import { address, domain, printable } from '../../support/addresses.ts'
import t from '../../support/tap.ts'

const label63 = 'a'.repeat(63)
const domain253 = `${label63}.${label63}.${label63}.${'b'.repeat(61)}`
t.test('domains are compared in lower-case ASCII (punycode) form', async (t) => {
  const same = {
    'Example.COM': 'example.com',
    'a-1.b': 'a-1.b',
    'ab--cd.com': 'ab--cd.com',
    'a.b1': 'a.b1',
    'a.1b': 'a.1b',
    'a.b0x': 'a.b0x',
    'a.0x1g': 'a.0x1g',
    [domain253]: domain253,
  }
  const coded = {
    'ПРИМЕР.рф': 'xn--e1afmkfd.xn--p1ai',
    'straße.de': 'xn--strae-oqa.de',
    'XN--BCHER-KVA.ch': 'xn--bcher-kva.ch',
  }
  const folded = {
    'bu\u0308cher.ch': 'xn--bcher-kva.ch',
    'BÜCHER.ch': 'xn--bcher-kva.ch',
    'gr.ΟΔΟΣ': 'gr.xn--pxavbq',
  }
  for (const [given, ascii] of Object.entries({ ...same, ...coded, ...folded }))
    t.equal(domainToAscii(given), ascii)
})

t.test("rejects domains that aren't DNS names of two labels or more", async (t) => {
  const shapes = [
    '',
    '.',
    'localhost',
    'рф',
    'a.com.',
    '.a.com',
    '.ü%',
    'a..com',
    '-a.com',
    'a-.com',
    'a_b.com',
    'a b.com',
    'a.com ',
  ]
  const lengths = [
    `${label63}a.com`,
    `c.${domain253}`,
    `${domain253}b`,
    `${`${'u\u0308'.repeat(40)}.`.repeat(4)}de`,
    `${'ü'.repeat(60)}.de`,
    `${'é.'.repeat(60)}com`,
  ]
  const ips = '127.1 1.2.3.4 0x7f.1 a.0x1 a.0x a.1 a.12 [::1] [1.2.3.4] １２７.1 127。1 ::1'.split(' ')
  for (const given of [...shapes, ...lengths, ...ips]) t.equal(domainToAscii(given), null, printable(given))
})

t.test('rejects spellings that IDNA would map to another name', async (t) => {
  const mapped = [
    '%65xample.com',
    'ｅxample.com',
    'exam\u00adple.com',
    'a\u200bb.com',
    '中国。cn',
    'ﬁx.com',
    'i❤️.ws',
    '①.com',
  ]
  const cut = [
    'ü.com/a',
    'ü.com?a',
    'ü.com#a',
    'ü.com:80',
    'ü\t.com',
    'ü\n.com',
    'a@ü.com',
    'ü\\.com',
    'ü\0.com',
    '\ud800.com',
  ]
  const undecodable = ['xn--a.com', 'xn--.com', 'xn--zzzzzzzzz.com', 'xn--abc-.com', 'ü.xn--a']
  for (const given of [...mapped, ...cut, ...undecodable])
    t.equal(domainToAscii(given), null, printable(given))
})

t.test('every accepted domain is a hostname in its ASCII form', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.webAuthority(), domain), (given) => {
      const ascii = domainToAscii(given)
      if (ascii === null) return true
      return (
        /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(ascii) && ascii.length <= 253 && domainToAscii(ascii) === ascii
      )
    }),
    { numRuns: 2000 },
  )
})

t.test('an address is bare, without outer spaces and tabs', async (t) => {
  t.strictSame(parseAddress(' \tJo.Do+x@Пример.РФ '), {
    address: 'Jo.Do+x@Пример.РФ',
    domain: 'xn--e1afmkfd.xn--p1ai',
    identity: 'jo.do+x@xn--e1afmkfd.xn--p1ai',
  })
  t.match(parseAddress("!#$%&'*+-/=?^_`{|}~9@b.co"), { domain: 'b.co' })
})

t.test('the local part is an ASCII dot-atom of at most 64 characters', async (t) => {
  t.ok(parseAddress(`${'a'.repeat(64)}@b.co`))
  for (const local of [
    '',
    '.',
    '.a',
    'a.',
    'a..b',
    'a b',
    '"a"',
    '"a b"',
    'ü',
    'a@b',
    'a(c)',
    '(c)a',
    'a\\b',
    'a'.repeat(65),
  ]) {
    t.equal(parseAddress(`${local}@b.co`), null, local)
  }
})

t.test('an address has at most 254 characters, as given and in ASCII form', async (t) => {
  const domain = (length: number) => `${label63}.${label63}.${label63}.${'b'.repeat(length - 192)}`
  t.ok(parseAddress(`aa@${domain(251)}`))
  t.equal(parseAddress(`aa@${domain(252)}`), null)
  const idn = `${'ü'.repeat(50)}.`.repeat(4)
  t.ok(idn.length < 254 && domainToAscii(`${idn}de`))
  const room = 254 - `@${domainToAscii(`${idn}de`)}`.length
  t.ok(parseAddress(`${'a'.repeat(room)}@${idn}de`))
  t.equal(parseAddress(`${'a'.repeat(room + 1)}@${idn}de`), null)
  t.equal(parseAddress(`${'a'.repeat(64)}@${idn}de`), null)
  const decomposed = `${'u\u0308'.repeat(20)}.`.repeat(4)
  t.ok(parseAddress(`a@${decomposed}de`))
  t.equal(parseAddress(`${'a'.repeat(64)}@${decomposed}${label63}.de`), null)
})

t.test('rejects everything that nodemailer reads as several recipients', async (t) => {
  const lists = [
    'v@e.fr, evil@x.com',
    'v@e.fr,evil@x.com',
    'v@e.fr;w@x.com',
    'grp:a@b.co,c@d.co;',
    'grp:;',
    '<a@b.co>',
    'N <a@b.co>',
  ]
  const breaks = [
    'x@y.co\r\nRCPT TO:<w@w.co>',
    'a@b.co\n',
    '\na@b.co',
    'a@b.co\0',
    '\0a@b.co',
    'a\r@b.co',
    'a@b.co\u2028',
    '\u00a0a@b.co',
  ]
  const parts = [
    '',
    '@',
    'a',
    'a@',
    '@b.co',
    'abc.com',
    'a@b',
    'a@@b.co',
    'a@b.co@c.co',
    '@a.co:b@c.co',
    'a@[1.2.3.4]',
    'a@b.co (c)',
    'a b@c.co',
  ]
  for (const text of [...lists, ...breaks, ...parts]) t.equal(parseAddress(text), null, printable(text))
  for (const text of [...lists.slice(0, 5), ...breaks, ...parts])
    t.equal(parseMailbox(text), null, printable(text))
})

t.test('identity ignores case and the spelling of an IDN', async (t) => {
  const spellings = ['Jo@BÜCHER.ch', 'jo@bücher.CH', 'JO@xn--bcher-kva.ch', 'jo@bu\u0308cher.ch']
  t.strictSame([...new Set(spellings.map(addressIdentity))], ['jo@xn--bcher-kva.ch'])
  t.not(addressIdentity('jo+x@b.co'), addressIdentity('jo@b.co'))
  fc.assert(
    fc.property(
      address.filter((given) => parseAddress(given) !== null),
      (given) => {
        return addressIdentity(addressIdentity(given)) === addressIdentity(given)
      },
    ),
  )
})

t.test('the envelope keeps the local part and has an ASCII domain', async (t) => {
  t.equal(toWireAddress('Jo@BÜCHER.ch'), 'Jo@xn--bcher-kva.ch')
  t.throws(() => toWireAddress('a@b.co, c@d.co'), RangeError)
  t.throws(() => addressIdentity('x'), RangeError)
})

t.test('parses 100,000 characters quickly', async (t) => {
  for (const scrap of [
    'a',
    '.',
    '@',
    ' ',
    '"',
    '\\',
    '<',
    '>',
    'a.',
    'a@',
    '"a" ',
    'ü',
    '\u0301',
    'xn--',
    ' \t',
  ]) {
    const long = scrap.repeat(100_000 / scrap.length)
    for (const text of [long, `x${long}y`, `a@${long}`, `${long}@b.co`, `a@${long}.co`]) {
      t.equal(parseAddress(text), null)
      t.equal(domainToAscii(text), null)
    }
    for (const text of [`"${long}`, `"${long}"`, `${long}>`, `<${long}>`, `x${long}y`])
      t.equal(parseMailbox(text), null)
  }
  t.ok(parseMailbox(`${'a '.repeat(50_000)}<a@b.co>`))
  t.ok(parseMailbox(`"${'\\"'.repeat(50_000)}" <a@b.co>`))
  t.ok(parseMailbox(`${' '.repeat(100_000)}a@b.co${' '.repeat(100_000)}`))
})

t.test('an invalid stored address is an internal error', async (t) => {
  t.throws(() => parsedAddress('nobody'), new RangeError('not an email address'))
})
