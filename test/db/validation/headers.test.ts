// Custom headers: names, values and reserved names. DECISIONS: Header values, Reserved headers.

import fc from 'fast-check'
import { headersFault, reservedFault } from '../../../db/validation/headers.ts'
import t from '../../support/tap.ts'

const numbered = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-${at}`, 'a']))

t.test('rule 1: at most 10 entries', async (t) => {
  t.equal(headersFault({}), null)
  t.equal(headersFault(numbered(10)), null)
  t.match(headersFault(numbered(11)), { field: 'headers', problem: /10/ })
})

t.test('rule 2: names are tokens of at most 126 characters', async (t) => {
  for (const name of ['X', 'X-Foo', "a!#$%&'*+-.^_`|~9", 'x'.repeat(126)])
    t.equal(headersFault({ [name]: 'a' }), null)
  t.match(headersFault({ ['x'.repeat(127)]: 'a' }), { field: /^headers\[/, problem: /126/ })
  for (const name of ['', 'X Foo', 'X:', 'X\r\nBcc', 'X\0', 'Ü', 'X(a)', 'a@b', '"a"', 'a/b', '{a}', 'X\n']) {
    t.match(headersFault({ [name]: 'a' }), { field: /^headers\[/, problem: /name/ }, JSON.stringify(name))
  }
})

t.test('rule 3: values are 1 to 995 printable ASCII characters', async (t) => {
  for (const value of [' ', 'a', '~', 'x'.repeat(995)]) t.equal(headersFault({ 'X-Foo': value }), null)
  for (const value of ['', 'x'.repeat(996), 'a\r\nBcc: b', 'a\n', '\t', '\0', '\x7f', 'ü', '\u2028', '😀'])
    t.match(headersFault({ 'X-Foo': value }), { field: 'headers.X-Foo', problem: /1 to 995/ })
})

t.test('rule 4: reserved names are rejected in any case', async (t) => {
  const envelope = ['From', 'To', 'Cc', 'Bcc', 'Subject', 'Date', 'Message-ID', 'Return-Path', 'Received']
  const mime = ['MIME-Version', 'Content-Type', 'Content-Transfer-Encoding', 'DKIM-Signature']
  for (const name of [...envelope, ...mime]) {
    for (const spelt of [name, name.toLowerCase(), name.toUpperCase()])
      t.match(headersFault({ [spelt]: 'a' }), { field: `headers.${spelt}`, problem: /reserved/ })
  }
})

t.test('rule 4: X-SES and X-PROVIDER prefixes are rejected', async (t) => {
  for (const name of ['X-SES', 'x-ses-message-tags', 'X-Session', 'X-PROVIDER', 'x-Provider-Id']) {
    t.match(headersFault({ [name]: 'a' }), { field: `headers.${name}`, problem: /X-(SES|PROVIDER)/ })
  }
  for (const name of ['X-SE', 'X-Prov', 'Y-X-SES', 'Subject-Line', 'Reply-To'])
    t.equal(headersFault({ [name]: 'a' }), null)
})

t.test("rejects an operator's reserved prefixes in any case", async (t) => {
  for (const prefix of ['x-relay-', 'X-Relay-'])
    for (const name of ['X-RELAY-Tag', 'x-relay-'])
      t.match(reservedFault({ 'X-Fine': 'a', [name]: 'a' }, { prefixes: ['x-other', prefix], names: [] }), {
        field: `headers.${name}`,
        problem: /X-RELAY-/,
      })
  t.equal(reservedFault({ 'X-Rela': 'a', 'My-X-Relay-': 'a' }, { prefixes: ['X-Relay-'], names: [] }), null)
  t.equal(reservedFault({ 'X-Relay-Tag': 'a' }, { prefixes: [], names: [] }), null)
})

t.test("rejects an operator's reserved names in any case", async (t) => {
  const asked = (headers: Record<string, string>) =>
    reservedFault(headers, { prefixes: [], names: ['x-other', 'X-Tag'] })
  for (const name of ['X-Tag', 'x-tag', 'X-TAG'])
    t.match(asked({ 'X-Fine': 'a', [name]: 'a' }), { field: `headers.${name}`, problem: /reserved/ })
  t.equal(asked({ 'X-Tags': 'a', 'X-Ta': 'a' }), null)
})

t.test('rule 5: RFC 8058 one-click unsubscribe headers are allowed', async (t) => {
  const headers = {
    'List-Unsubscribe': '<https://a.example/u>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }
  t.equal(headersFault(headers), null)
})

t.test('rejects names that differ only in case', async (t) => {
  t.match(headersFault({ 'X-Foo': 'a', 'x-foo': 'b' }), { field: 'headers.x-foo', problem: /twice/ })
})

t.test('__proto__, constructor and prototype are ordinary names', async (t) => {
  t.equal(headersFault(JSON.parse('{"__proto__":"a","constructor":"b","prototype":"c"}')), null)
  t.match(headersFault(JSON.parse('{"__proto__":"\\n"}')), { field: 'headers.__proto__' })
})

t.test('the error names the first wrong header, printable', async (t) => {
  t.match(headersFault({ 'X-Good': 'a', 'X-Bad': '', 'X-Worse': '' }), { field: 'headers.X-Bad' })
  t.match(headersFault({ 'X\r\nBcc': 'a' }), { field: 'headers["X\\r\\nBcc"]' })
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })), (headers) => {
      return !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(Object.values(headersFault(headers) ?? {}).join())
    }),
  )
})

t.test("an accepted header can't break out of its line", async () => {
  const name = fc.stringMatching(/^[ -~\r\n]{1,20}$/)
  fc.assert(
    fc.property(name, fc.string({ unit: 'binary' }), (name, value) => {
      if (headersFault({ [name]: value }) !== null) return true
      return !/[^ -~]/.test(name + value) && !/[: ]/.test(name)
    }),
  )
})

t.test('checks 100,000 characters quickly', async (t) => {
  for (const letter of ['a', '-', ' ', '\0', 'X-SES']) {
    t.ok(headersFault({ [letter.repeat(100_000)]: 'a' }))
    t.ok(headersFault({ 'X-Foo': letter.repeat(100_000) }))
  }
})
