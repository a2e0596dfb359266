/** A message on the wire: structure, header fidelity, line lengths, DKIM. */
import { generateKeyPairSync } from 'node:crypto'
import type { OutgoingEmail } from '../../../../workers/providers/provider.ts'
import type { SandboxMessage } from '../../../sandbox/smtp.ts'
import { verifyDkim } from '../../../support/dkim.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { start as startRelay } from '../../../support/smtp-provider.ts'
import t, { type Test } from '../../../support/tap.ts'

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const public_key = keys.publicKey
const dkim = { domain: 'demo.test', selector: 'h1', private_key: keys.privateKey }

async function start(t: Test) {
  const { sink, provider } = await startRelay(t)
  const deliver = async (changes: Partial<OutgoingEmail>): Promise<SandboxMessage> => {
    const email = outgoingEmail(changes)
    const { outcomes } = await provider.send(email)
    t.equal(outcomes.get(email.recipients[0] ?? '')?.kind, 'accepted', JSON.stringify([...outcomes]))
    return sink.last()
  }
  return { deliver }
}

/** Returns header fields as [name, value], unfolded by removing only CRLF, so that every other byte shows. */
const fieldsOf = ({ raw }: SandboxMessage): [string, string][] =>
  headerOf(raw)
    .split(/\r\n(?![ \t])/)
    .map((field) => field.replaceAll('\r\n', ''))
    .map((field) => [field.slice(0, field.indexOf(':')), field.slice(field.indexOf(':') + 1).slice(1)])

const headerOf = (raw: Buffer): string => raw.toString('latin1').split('\r\n\r\n', 1)[0] ?? ''
const field = (message: SandboxMessage, name: string): string | undefined =>
  fieldsOf(message).find(([found]) => found.toLowerCase() === name.toLowerCase())?.[1]
const longestLine = ({ raw }: SandboxMessage): number =>
  raw
    .toString('latin1')
    .split('\r\n')
    .reduce((longest, line) => Math.max(longest, line.length), 0)

t.test('an email with text is multipart/alternative, text before html', async (t) => {
  const { deliver } = await start(t)
  const message = await deliver({ html: '<p>Grüße</p>', text: 'Grüße\n.\nend' })
  t.match(field(message, 'Content-Type'), /^multipart\/alternative;/)
  const types = message.raw.toString().match(/^Content-Type: text\/\w+/gm)
  t.same(types, ['Content-Type: text/plain', 'Content-Type: text/html'])
  const { html, text } = await message.parsed()
  t.equal(html?.trim(), '<p>Grüße</p>')
  t.equal(text?.trim(), 'Grüße\n.\nend', 'lines with a lone dot survive')
})

t.test('an email without text is only text/html', async (t) => {
  const { deliver } = await start(t)
  const message = await deliver({ html: '<p>Hi</p>' })
  t.match(field(message, 'Content-Type'), /^text\/html; charset=utf-8$/)
  t.notMatch(message.raw.toString(), /multipart|text\/plain/)
})

t.test('the standard headers are the row’s, without a mailer', async (t) => {
  const { deliver } = await start(t)
  const message = await deliver({
    message_id: 'abc@demo.test',
    to: ['ana@example.com', 'bob@example.com'],
    recipients: ['bob@example.com'],
  })
  t.equal(field(message, 'From'), 'Demo <hello@demo.test>')
  t.equal(field(message, 'To'), 'ana@example.com, bob@example.com')
  t.same(message.rcpt_to, ['bob@example.com'], 'only this attempt’s recipients are in the envelope')
  t.equal(message.mail_from, 'bounce@demo.test')
  t.equal(field(message, 'Message-ID'), '<abc@demo.test>')
  t.equal(field(message, 'Date'), 'Sun, 01 Mar 2026 12:00:00 +0000')
  t.equal(field(message, 'MIME-Version'), '1.0')
  const names = fieldsOf(message).map(([name]) => name.toLowerCase())
  t.equal(new Set(names).size, names.length, 'every header once')
  t.notOk(names.includes('x-mailer') || names.includes('reply-to') || names.includes('bcc'))
})

t.test('custom headers are sent byte for byte, name and value', async (t) => {
  const { deliver } = await start(t)
  const headers = Object.fromEntries([
    ['X-MyHeader', 'plain'],
    ['x-lower-CASE', '  two leading, two  inner, one trailing '],
    ['__proto__', '=?utf-8?Q?not_decoded?= "quoted" \\ <a@b> ;,: %00 {{x}}'],
    ['List-Unsubscribe', '<https://x.test/u?a=1&b=2>, <mailto:u@x.test?subject=u>'],
    ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ['References', 'not  angle <a@b>  <c d@e>'],
    ['In-Reply-To', 'no-angles@demo.test'],
    ['Resent-Message-ID', 'bare'],
    ['X-Words', 'word '.repeat(199).slice(0, 995)],
    ['constructor', 'x'],
  ])
  const message = await deliver({ headers })
  for (const [name, value] of Object.entries(headers)) {
    const found = fieldsOf(message).filter(([found]) => found === name)
    t.same(found, [[name, value]], name)
  }
})

t.test('a header of 995 characters arrives intact', async (t) => {
  const { deliver } = await start(t)
  const long = Array.from({ length: 995 }, (_, at) => String.fromCharCode(0x21 + (at % 94))).join('')
  const headers = {
    'X-Fits': 'v'.repeat(990),
    'X-Long': long,
    ['X-'.padEnd(126, 'n')]: long,
    References: `<${'r'.repeat(993)}>`,
    'List-Unsubscribe': `<https://x.test/${'u'.repeat(978)}>`,
    'X-Blank': ' '.repeat(995),
    ['X-Blank-'.padEnd(126, 'n')]: ' '.repeat(995),
  }
  for (const key of [null, dkim]) {
    const message = await deliver({ headers, dkim: key })
    for (const [name, value] of Object.entries(headers)) {
      const expected = value.trim() === '' ? value.slice(0, 998 - name.length - 2) : value
      t.equal(field(message, name), expected, name)
    }
    t.ok(longestLine(message) <= 998, `longest line ${longestLine(message)}`)
    t.notMatch(headerOf(message.raw), /\r\n[ \t]+(\r\n|$)/, 'no line of blanks alone')
    const verdict = key ? verifyDkim(message.raw, public_key) : null
    if (verdict) t.match(verdict, { body_matches: true, signature_matches: true })
  }
})

t.test('spaces in names never make a line of only spaces', async (t) => {
  const { deliver } = await start(t)
  const filename = `a${' '.repeat(200)}b.pdf`
  const file = { filename, content_type: 'application/pdf', content_id: null, encoded: [Buffer.from('QQ==')] }
  const to = [`"Ana${' '.repeat(200)}Berg" <ana@example.org>`]
  const message = await deliver({ to, recipients: ['ana@example.org'], files: [file], dkim })
  t.notMatch(message.raw.toString('latin1'), /\r\n[ \t]+\r\n/)
  t.equal(field(message, 'To'), to[0]?.replaceAll('"', ''))
  t.ok(longestLine(message) <= 998)
  t.match(verifyDkim(message.raw, public_key), { body_matches: true, signature_matches: true })
  t.match((await message.parsed()).attachments, [{ filename }])
})

t.test('reply_to overrides a custom Reply-To, which is otherwise unchanged', async (t) => {
  const { deliver } = await start(t)
  const headers = { 'reply-TO': 'Custom <c@demo.test>' }
  const both = await deliver({ headers, reply_to: 'r@demo.test' })
  const fields = fieldsOf(both).filter(([name]) => /^reply-to$/i.test(name))
  t.same(fields, [['Reply-To', 'r@demo.test']])
  const own = fieldsOf(await deliver({ headers })).filter(([name]) => /^reply-to$/i.test(name))
  t.same(own, [['reply-TO', 'Custom <c@demo.test>']])
})

t.test('a header that can’t have been accepted is never sent', async (t) => {
  const { sink, provider } = await startRelay(t)
  for (const headers of [
    { 'X-A': 'a\r\nBcc: x@y.z' },
    { 'X-A\r\nBcc': 'x@y.z' },
    { 'X-A: b': 'c' },
    { From: 'x@y.z' },
  ]) {
    const { outcomes } = await provider.send(outgoingEmail({ headers }))
    t.match(outcomes.get('ana@example.com'), { kind: 'deferred' }, 'our fault ends no message')
  }
  t.equal(sink.messages().length, 0)
})

t.test('any subject comes back unchanged', async (t) => {
  const { deliver } = await start(t)
  const subjects = [
    'plain',
    'Grüße 😀 日本語 عربى',
    '😀'.repeat(998),
    'x'.repeat(998),
    `${'é'}${'x'.repeat(997)}`,
    'words '.repeat(166).trim(),
    '=?utf-8?B?SGVsbG8=?= looks encoded',
    `a${' '.repeat(200)}b`,
    ' outer blanks ',
    'tab\there',
    'control \u0001\u007f',
    'é =?utf-8?B?SGVsbG8=?=',
    '\u202e right to left, e\u0301 combining',
    'a: b; "c" <d@e.f>, (g)',
  ]
  for (const subject of subjects) {
    const message = await deliver({ subject, dkim })
    t.equal((await message.parsed()).subject, subject, JSON.stringify(subject.slice(0, 30)))
    t.ok(longestLine(message) <= 998)
    t.ok(verifyDkim(message.raw, public_key).signature_matches)
  }
})

t.test('the sender keeps its name, and domains become punycode', async (t) => {
  const { deliver } = await start(t)
  const cases: [string, string, string][] = [
    ['hello@demo.test', '', 'hello@demo.test'],
    ['"Grüße, \\"Jörg\\"" <j@bücher.test>', 'Grüße, "Jörg"', 'j@xn--bcher-kva.test'],
    ['"Doe, John" <j@demo.test>', 'Doe, John', 'j@demo.test'],
    ['"=?utf-8?Q?a?=" <j@demo.test>', '=?utf-8?Q?a?=', 'j@demo.test'],
    [`${'n'.repeat(1500)} <j@demo.test>`, 'n'.repeat(1500), 'j@demo.test'],
    [`${'名'.repeat(300)} <j@demo.test>`, '名'.repeat(300), 'j@demo.test'],
  ]
  for (const [from, name, address] of cases) {
    const message = await deliver({ from })
    const parsed = await message.parsed()
    t.match(parsed.from, { name, address }, from.slice(0, 40))
    t.ok(longestLine(message) <= 998)
    t.match(headerOf(message.raw), /^[ -~\r\n]*$/, 'ASCII only')
  }
  const message = await deliver({ to: ['ana@bücher.test'], reply_to: 'r@bücher.test' })
  t.equal(field(message, 'To'), 'ana@xn--bcher-kva.test')
  t.equal(field(message, 'Reply-To'), 'r@xn--bcher-kva.test')
})

t.test('endless lines arrive in lines of at most 998 octets', async (t) => {
  const { deliver } = await start(t)
  const bodies = ['x'.repeat(1024 * 1024), 'é'.repeat(512 * 1024), `.${'\n.'.repeat(60_000)}`]
  for (const body of bodies) {
    const message = await deliver({ html: body, text: body, dkim })
    t.ok(longestLine(message) <= 998)
    t.match(message.raw.toString('latin1').slice(0, 5000), /^[\t\r\n -~]*$/, '7-bit')
    const { html, text } = await message.parsed()
    // not t.equal: its diff of a megabyte would never end
    t.ok(html?.trimEnd().replaceAll('\r\n', '\n') === body, 'html')
    t.ok(text?.trimEnd().replaceAll('\r\n', '\n') === body, 'text')
    t.match(verifyDkim(message.raw, public_key), { body_matches: true, signature_matches: true })
  }
})

t.test('line ends are normalised before the signature', async (t) => {
  const { deliver } = await start(t)
  const message = await deliver({ html: '<p>a</p>\n<p>b</p>\r\n<p>c</p>\r<p>d</p>', text: 'a \n\n\n', dkim })
  t.notMatch(message.raw.toString('latin1'), /[^\r]\n|\r[^\n]/)
  t.equal((await message.parsed()).html?.trim(), '<p>a</p>\n<p>b</p>\n<p>c</p>\n<p>d</p>')
  t.match(verifyDkim(message.raw, public_key), { body_matches: true, signature_matches: true })
})

t.test('the DKIM signature covers the important headers', async (t) => {
  const { deliver } = await start(t)
  const headers = {
    'list-unsubscribe': '<https://x.test/u>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }
  const message = await deliver({ dkim, headers, reply_to: 'r@demo.test', text: 'hi' })
  const verdict = verifyDkim(message.raw, public_key)
  t.match(verdict, { body_matches: true, signature_matches: true, domain: 'demo.test', selector: 'h1' })
  const expected =
    'from to subject date message-id reply-to mime-version content-type list-unsubscribe list-unsubscribe-post'
  for (const name of expected.split(' ')) t.ok(verdict.signed.includes(name), name)
  const tampered = Buffer.from(message.raw.toString('latin1').replace('One-Click', 'One-Clack'), 'latin1')
  t.notOk(verifyDkim(tampered, public_key).signature_matches, 'the judge is not blind')
  t.notOk(verifyDkim(Buffer.concat([message.raw, Buffer.from('x')]), public_key).body_matches)
})

t.test('an email waits if its DKIM key can’t sign', async (t) => {
  const { sink, provider } = await startRelay(t)
  const publicKey = { ...dkim, private_key: keys.publicKey }
  const second = { ...dkim, private_key: generateKeyPairSync('ed25519').publicKey }
  for (const signing of [{ dkim: publicKey }, { dkim, ed25519: second }]) {
    const { outcomes } = await provider.send(outgoingEmail(signing))
    t.match(outcomes.get('ana@example.com'), {
      kind: 'deferred',
      detail: /DKIM key of demo\.test cannot sign/,
    })
  }
  t.equal(sink.messages().length, 0)
})

t.test('an ASCII subject is sent unencoded, quotation marks included', async (t) => {
  const { deliver } = await start(t)
  for (const subject of ['Order "A-17" is ready', 'a\\b, <c> (d); "e', `"${'words '.repeat(40)}"`]) {
    const message = await deliver({ subject })
    t.equal(field(message, 'Subject')?.replace(/\r\n/g, ''), subject)
    t.equal((await message.parsed()).subject, subject)
  }
})

t.test('a body without text gives DKIM verifiers a hash', async (t) => {
  const { deliver } = await start(t)
  for (const html of ['', ' ', '\n\n', '\t \r\n']) {
    const message = await deliver({ html, text: '', dkim })
    const body = message.raw.toString('latin1').split('\r\n\r\n').slice(1).join('\r\n\r\n')
    t.match(body, /^[A-Za-z0-9+/=]+\r\n/, JSON.stringify(html))
    t.ok(await verifyDkim(message.raw, public_key), JSON.stringify(html))
    const parsed = await message.parsed()
    t.equal((parsed.html ?? '').replace(/\r\n|\n$/g, '').trim(), '', 'and it is still blank')
  }
})

t.test('recipients keep their names; invalid mailboxes are not shown', async (t) => {
  const { deliver } = await start(t)
  const to = [
    'Ann <ann@example.com>',
    '"Smith, Jörg" <j@example.com>',
    'bob@example.com',
    'x@y.test, evil@x.test',
  ]
  const message = await deliver({ to, recipients: ['ann@example.com'] })
  t.match(field(message, 'To'), /^Ann <ann@example\.com>, =\?UTF-8\?.* <j@example\.com>, bob@example\.com$/)
  t.same(message.rcpt_to, ['ann@example.com'])
})
