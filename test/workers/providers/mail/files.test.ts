/**
 * Attachments in mail programs: every shape of a message and every kind of name, by two independent parsers,
 * with the signature verified from RFC 6376 and by OpenDKIM if available.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { simpleParser } from 'mailparser'
import PostalMime from 'postal-mime'
import { typeOfName } from '../../../../db/validation/file-types.ts'
import type { OutgoingEmail, OutgoingFile } from '../../../../workers/providers/provider.ts'
import { verifyDkim } from '../../../support/dkim.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { programMissing, runProgram } from '../../../support/programs.ts'
import { start } from '../../../support/smtp-provider.ts'
import t, { type Test } from '../../../support/tap.ts'

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const dkim = { domain: 'demo.test', selector: 'h1', private_key: keys.privateKey }
const withoutOpenDkim = (await programMissing('opendkim', 'opendkim')) ?? false

const { sink, provider } = await start(t)

type Given = OutgoingFile & { bytes: Buffer }

/** Returns a file as the worker sends it: lines of base64 without the last line break. */
const file = (filename: string, changes: Partial<OutgoingFile> = {}, bytes = randomBytes(200)): Given => {
  const lines = bytes.toString('base64').replace(/.{76}(?=.)/g, '$&\r\n')
  const rest = { content_type: typeOfName(filename), content_id: null, ...changes }
  return { filename, bytes, encoded: [Buffer.from(lines, 'latin1')], ...rest }
}

async function deliver(t: Test, changes: Partial<OutgoingEmail>): Promise<Buffer> {
  const email = outgoingEmail({ dkim, ...changes })
  const { outcomes } = await provider.send(email)
  t.match([...outcomes.values()], [{ kind: 'accepted' }])
  return sink.last().raw
}

/** A parser's result, in one form for both. */
type Found = { filename: string; type: string; cid: string; inline: boolean; bytes: string }

/** Returns each file, and an invitation again as an unnamed alternative. */
const expected = (files: readonly Given[]): Found[] =>
  files.flatMap(({ filename, content_type, content_id, bytes }) => {
    const found = {
      filename,
      type: content_type.split(';')[0] ?? '',
      cid: content_id ?? '',
      inline: content_id !== null,
      bytes: bytes.toString('hex'),
    }
    return content_type.includes('method=') ? [found, { ...found, filename: '' }] : [found]
  })

/** Returns both parsers' results. */
async function readings(raw: Buffer): Promise<{ by: string; html: string; text: string; files: Found[] }[]> {
  const postal = await PostalMime.parse(raw)
  const node = await simpleParser(raw, { skipImageLinks: true })
  return [
    {
      by: 'postal-mime',
      html: postal.html?.trim() ?? '',
      text: postal.text?.trim() ?? '',
      files: postal.attachments.map((part) => ({
        filename: part.filename ?? '',
        type: part.mimeType,
        cid: part.contentId?.replace(/^<|>$/g, '') ?? '',
        inline: part.disposition === 'inline',
        bytes: Buffer.from(part.content as ArrayBuffer).toString('hex'),
      })),
    },
    {
      by: 'mailparser',
      html: (node.html || '').trim(),
      text: node.text?.trim() ?? '',
      files: node.attachments.map((part) => ({
        filename: part.filename ?? '',
        type: part.contentType,
        cid: part.cid ?? '',
        inline: part.contentDisposition === 'inline',
        bytes: part.content.toString('hex'),
      })),
    },
  ]
}

const byName = (files: readonly Found[]): Found[] =>
  files.toSorted((one, other) => (one.filename < other.filename ? -1 : 1))

const CALENDAR = 'BEGIN:VCALENDAR\nSUMMARY:Größe\nEND:VCALENDAR\n'
const picture = file('logo.png', { content_type: 'image/png', content_id: 'logo@x' })
const shapes: [string, Partial<OutgoingEmail>, Given[], RegExp][] = [
  ['one attachment', {}, [file('a.pdf')], /^multipart\/mixed/],
  ['one attachment, and text', { text: 'Hello' }, [file('a.pdf')], /^multipart\/mixed/],
  ['an inline picture', { html: '<img src="cid:logo@x">' }, [picture], /^multipart\/related/],
  [
    'an inline picture, and text',
    { html: '<img src="cid:logo@x">', text: 'Hello' },
    [picture],
    /^multipart\/alternative/,
  ],
  [
    'inline pictures, attachments and text',
    { html: '<img src="cid:logo@x">', text: 'Hello' },
    [
      picture,
      file('b.gif', { content_type: 'image/gif', content_id: 'b' }),
      file('a.pdf'),
      file(
        'meet.ics',
        { content_type: 'text/calendar; method=REQUEST; charset=utf-8' },
        Buffer.from(CALENDAR),
      ),
    ],
    /^multipart\/mixed/,
  ],
  [
    'an inline picture beside an attachment, without text',
    { html: '<img src="cid:logo@x">' },
    [picture, file('a.pdf')],
    /^multipart\/mixed/,
  ],
  ['twenty attachments', {}, Array.from({ length: 20 }, (_, n) => file(`${n}.bin`)), /^multipart\/mixed/],
  [
    'lines that begin with dots around a large file',
    { html: `<p>Hi</p>\n.\n..two\n${'.three\n'.repeat(20_000)}<p>end</p>` },
    [file('large.bin', {}, randomBytes(300_000))],
    /^multipart\/mixed/,
  ],
  ['a file of one byte', {}, [file('one', {}, Buffer.of(0))], /^multipart\/mixed/],
]

for (const [name, changes, files, type] of shapes) {
  t.test(`${name}: both parsers read it, and the signature is valid`, async (t) => {
    const raw = await deliver(t, { html: '<p>Hi</p>', ...changes, files })
    t.match(/^Content-Type: (.*)$/im.exec(raw.toString('latin1'))?.[1], type)
    const { body_matches, signature_matches } = verifyDkim(raw, keys.publicKey)
    t.ok(body_matches && signature_matches)
    for (const { by, html, text, files: found } of await readings(raw)) {
      t.strictSame(byName(found), byName(expected(files)), by)
      t.equal(html, changes.html ?? '<p>Hi</p>', by)
      if (changes.text !== undefined) t.equal(text, changes.text, by)
    }
  })
}

const NAMES = [
  'plain.pdf',
  'with spaces and (parentheses) [brackets].pdf',
  'Rechnung für März – Größe Ü.pdf',
  'счёт-фактура № 5.pdf',
  '請求書（四月分）.pdf',
  'فاتورة رقم ٧.pdf',
  'חשבונית.pdf',
  'ใบแจ้งหนี้.pdf',
  '청구서.pdf',
  'tickets 🎫🎫 👩‍👩‍👧.pdf',
  'a"b\'c;d=e,f<g>@h.pdf',
  "it's 100%41 *starred*.pdf",
  "UTF-8''percent%20encoded.pdf",
  `${'long '.repeat(50)}.pdf`,
  `${'長'.repeat(83)}.pdf`,
  'noextension',
  '.hidden',
]

t.test('names in any language come back unchanged, alone and together', async (t) => {
  const files = NAMES.map((name) => file(name))
  const raw = await deliver(t, { files })
  t.ok(verifyDkim(raw, keys.publicKey).signature_matches)
  t.notMatch(raw.toString('latin1'), /[^\0-\x7f]|[^\r\n]{999}/, 'seven bits, in lines of at most 998')
  for (const { by, files: found } of await readings(raw))
    t.strictSame(byName(found), byName(expected(files)), by)
})

t.test('a name that looks like an encoded word stays literal', async (t) => {
  const files = [file('=?utf-8?Q?looks_encoded?=.pdf')]
  const raw = await deliver(t, { files })
  // postal-mime decodes anything that looks encoded.
  const found = (await readings(raw)).find(({ by }) => by === 'mailparser')
  t.strictSame(found?.files, expected(files))
})

t.test('OpenDKIM also verifies the signature of each shape', { skip: withoutOpenDkim }, async (t) => {
  const home = t.testdir({})
  const der = keys.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
  await writeFile(join(home, 'keys'), `h1._domainkey.demo.test v=DKIM1; k=rsa; p=${der}\n`)
  await writeFile(join(home, 'conf'), `TestDNSData file:${join(home, 'keys')}\nMode v\n`)
  for (const [index, [name, changes, files]] of shapes.entries()) {
    const at = join(home, `${index}.eml`)
    await writeFile(at, await deliver(t, { html: '<p>Hi</p>', ...changes, files }))
    const { stdout } = await runProgram('opendkim', ['-x', join(home, 'conf'), '-t', at])
    t.match(stdout, /verification \(s=h1, d=demo\.test,.*\) succeeded/, name)
  }
})

t.test('a calendar with a method is also the last alternative', async (t) => {
  const content_type = 'text/calendar; charset=utf-8; method=REQUEST'
  const invitation = file('invitation.ics', { content_type })
  const raw = await deliver(t, { text: 'hi', files: [invitation] })
  const { alternatives, attachments } = await simpleParser(raw).then(({ attachments }) => ({
    alternatives: attachments.filter(({ contentDisposition }) => contentDisposition !== 'attachment'),
    attachments: attachments.filter(({ contentDisposition }) => contentDisposition === 'attachment'),
  }))
  for (const found of [alternatives, attachments]) {
    const files = found.map((each) => [each.contentType, each.content.equals(invitation.bytes)])
    t.strictSame(files, [['text/calendar', true]])
  }
  const types = [...raw.toString('latin1').matchAll(/^Content-Type: ([^;\r]+)/gm)].map(([, type]) => type)
  t.strictSame(types, [
    ...[
      'multipart/mixed',
      'multipart/alternative',
      'text/plain',
      'text/html',
      'text/calendar',
      'text/calendar',
    ],
  ])
  const plain = await deliver(t, { files: [file('dates.ics', { content_type: 'text/calendar' })] })
  t.equal(plain.toString('latin1').match(/^Content-Type: text\/calendar/gm)?.length, 1)
})
