/** Messages without files, compared byte for byte with nodemailer's composer. */
import MailComposer from 'nodemailer/lib/mail-composer'
import { type PlainOptions, plainMessage } from '../../../../workers/providers/mail/plain-message.ts'
import t from '../../../support/tap.ts'

const given: PlainOptions = {
  to: [{ name: '', address: 'ana@example.com' }],
  cc: [],
  messageId: '<0192a5b0-1111-7000-8000-000000000001@demo.test>',
  date: new Date('2026-03-01T12:00:00Z'),
  html: '<p>Hello</p>',
  baseBoundary: '0123456789abcdef',
}

const prepared = (value: string): Pick<PlainOptions, 'headers'> => ({
  headers: { Subject: { prepared: true, foldLines: true, value } },
})

const ADDRESSES = [
  { name: '', address: 'a.b+c_d-e@example.com' },
  { name: 'Ana Berg_1', address: 'ana@example.org' },
  { name: 'two  spaces', address: 'x@example.org' },
  { name: "O'Brien", address: 'ob@example.org' },
  { name: '"Smith", Jörg \\ 名前', address: 'j@example.org' },
  { name: "O'Brien (x)", address: "o'brien!#$%&*/=?^`{|}~@example.org" },
  { name: '', address: 'punycode@xn--bcher-kva.example' },
  { name: '名'.repeat(60), address: `${'l'.repeat(64)}@${'d'.repeat(60)}.example.org` },
]

const BODIES = [
  'short',
  'x'.repeat(76),
  'x'.repeat(77),
  '1'.repeat(200),
  '1 '.repeat(4_000),
  `<p>${'Hello there. '.repeat(300)}`,
  'line \r\n'.repeat(40),
  `${'a b\t'.repeat(30)} \r\n.\r\n..dots\r\n`,
  'Grüße =3D ÿ \u00a0 und mehr Wörter in einer langen Zeile, die umgebrochen wird, weil sie länger als 76 ist',
  '日本語'.repeat(100),
  `ab${'\u0001\u0008\u000b\u000c\u001f'.repeat(30)}`,
  `${'é'.repeat(40)}${'e'.repeat(40)}`,
  `${'é'.repeat(40)}${'e'.repeat(41)}`,
  '\u007f delete',
  ' ',
  '\r\n',
  `${'y'.repeat(129 * 1024)}`,
]

const same = async (changes: Partial<PlainOptions>): Promise<boolean> => {
  const options = { ...given, ...changes }
  // The composer changes its input.
  const expected = await new MailComposer(structuredClone(options) as never).compile().build()
  const found = plainMessage(structuredClone(options))
  return `${found}${found.endsWith('\n') ? '' : '\r\n'}` === expected.toString('latin1')
}

t.test('writes every body as nodemailer does', async (t) => {
  for (const body of BODIES) {
    const about = JSON.stringify(body.slice(0, 20))
    t.ok(await same({ html: body }), `html ${about}`)
    t.ok(await same({ html: '', text: body }), `text ${about}`)
    t.ok(await same({ html: body, text: 'Hello' }), `html and text ${about}`)
    t.ok(await same({ html: '<p>Hello</p>', text: body }), `text and html ${about}`)
  }
})

t.test('every header is written as nodemailer writes it', async (t) => {
  for (const one of ADDRESSES) {
    t.ok(await same({ to: [one], cc: [one], replyTo: one }), one.address)
    for (const other of ADDRESSES) t.ok(await same({ to: [one, other, one], text: 'x' }), other.address)
  }
  t.ok(await same({ to: [], cc: [] }), 'nobody is named')
  t.ok(await same({ to: ADDRESSES, cc: ADDRESSES.toReversed() }), 'many')
  for (const value of ['Hello', '', ' ', 'words '.repeat(60).trim(), `"q" <a@b>, ${'z'.repeat(899)}`])
    t.ok(await same(prepared(value)), JSON.stringify(value.slice(0, 20)))
  for (const subject of ['Grüße', '日本語 '.repeat(30).trim(), 'tab\there', 'a\u0001\u007f', 'é "x" <y>'])
    t.ok(await same({ subject }), JSON.stringify(subject.slice(0, 20)))
  t.ok(await same({ messageId: `<${'i'.repeat(120)}@demo.test>` }), 'a long Message-ID')
  t.ok(await same({ date: new Date('2026-12-31T23:59:59Z'), baseBoundary: 'f'.repeat(16) }))
})
