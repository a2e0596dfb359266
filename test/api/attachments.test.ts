/** `attachments` of a send: validation, errors and storage. */
import { aFile, base64, beginAttachments, sha } from '../support/attachments.ts'
import { anEmail, makeKey, makeTeam } from '../support/service.ts'
import t from '../support/tap.ts'

const { service, team, send, batch, stored } = await beginAttachments(t)

t.test('the row has `attachments` only if the email has any', async (t) => {
  const { status, body } = await send([
    aFile(),
    { filename: 'logo.png', content: base64('png'), content_id: 'logo' },
    { filename: 'e\u0301.txt', content: 'aGV5\r\naGV5', content_type: 'text/calendar; method=REQUEST' },
    { filename: 'mail.eml', content: { type: 'Buffer', data: [1, 2, 255] } },
  ])
  t.equal(status, 201)
  t.strictSame(body.attachments, [
    {
      filename: 'invoice.pdf',
      content_type: 'application/pdf',
      size: 8,
      content_id: null,
      sha256: sha('%PDF-1.7'),
    },
    { filename: 'logo.png', content_type: 'image/png', size: 3, content_id: 'logo', sha256: sha('png') },
    {
      filename: '\u00e9.txt',
      content_type: 'text/calendar; method=REQUEST',
      size: 6,
      content_id: null,
      sha256: sha('heyhey'),
    },
    {
      filename: 'mail.eml',
      content_type: 'application/octet-stream',
      size: 3,
      content_id: null,
      sha256: sha(Uint8Array.of(1, 2, 255)),
    },
  ])
  for (const none of [undefined, null, []]) t.notOk('attachments' in (await send(none)).body)
})

t.test('an invalid attachment is bad_request and names its field', async (t) => {
  const wrong: [unknown, string][] = [
    ['x', 'attachments must be an array'],
    [Array(21).fill(aFile()), 'attachments must have at most 20'],
    [[5], 'attachments[0] must be an object'],
    [[aFile(), { content: 'QQ==' }], 'attachments[1].filename is required'],
    [[{ filename: 'a.txt' }], 'attachments[0].content or attachment_id is required'],
    [[aFile({ attachment_id: '01920000-0000-7000-8000-000000000000' })], 'attachments[0].attachment_id'],
    [[{ attachment_id: 'x' }], 'attachments[0].attachment_id must be a UUID'],
    ...['path', 'url', 'href'].map((name): [unknown, string] => [
      [{ filename: 'a.txt', [name]: 'https://example.com/a' }],
      `attachments[0].${name} is not supported. Send the file as base64 in content`,
    ]),
    ...['', 'QQ', 'QQ=', 'QR==', '=', 'a b=', 'QQ==QQ==', 5, { type: 'Buffer', data: [] }].map(
      (content): [unknown, string] => [[aFile({ content })], 'attachments[0].content must'],
    ),
    [[aFile({ content: { type: 'Buffer', data: [256] } })], 'attachments[0].content must'],
    [
      [aFile({ content: 'data:text/plain;base64,QQ==' })],
      'attachments[0].content must be base64 without a data:',
    ],
    [[aFile({ content: 'a-_b' })], 'not base64url'],
    ...['a/b', 'a\\b', '.', '..', '', 'a\nb', 'a\u202eb', 'é'.repeat(128), 5].map(
      (filename): [unknown, string] => [[aFile({ filename })], 'attachments[0].filename'],
    ),
    [[aFile({ filename: 'setup.EXE' })], "attachments[0].filename can't have the extension .exe"],
    ...['\u00a0', '\u200b', '\u3000.', '::$DATA', ':a.txt'].map((end): [unknown, string] => [
      [aFile({ filename: `setup.EXE${end}` })],
      "attachments[0].filename can't have the extension .exe",
    ]),
    ...[
      ':setup.exe',
      'a:setup.exe',
      'setup.e\u00adxe',
      'setup.\uff45xe',
      'setup\u2024exe',
      'setup.exe\ufe0f',
    ].map((filename): [unknown, string] => [
      [aFile({ filename })],
      "attachments[0].filename can't have the extension .exe",
    ]),
    [
      [aFile({ filename: '=?utf-8?B?ZXZpbC5leGU=?=' })],
      'attachments[0].filename must not contain "=?", which starts an encoded word',
    ],
    ...[
      'pdf',
      'a/b/c',
      'multipart/mixed',
      'message/rfc822',
      'text/plain\r\nX: y',
      'text/é',
      'text/x;',
      'text/x; a="b;c',
      'text/x; a="b"c',
      `a/${'b'.repeat(254)}`,
    ].map((content_type): [unknown, string] => [[aFile({ content_type })], 'attachments[0].content_type']),
    [[aFile({ content_id: 'a b' })], 'attachments[0].content_id'],
    [[aFile({ content_id: 'a' }), aFile({ content_id: 'a' })], 'attachments[1].content_id must be unique'],
  ]
  for (const [attachments, words] of wrong) {
    const { status, body } = await send(attachments)
    t.equal(`${status} ${body.error?.code}`, '400 bad_request', JSON.stringify(attachments).slice(0, 80))
    t.ok(body.error?.message.includes(words), body.error?.message)
  }
  const { body } = await batch([anEmail(), anEmail({ attachments: [aFile({ content: '*' })] })])
  t.equal(body.data[1].error.message.slice(0, 31), 'emails[1].attachments[0].conten')
})

t.test('the longest filename and type are accepted', async (t) => {
  const content_type = `text/x; a="${'b'.repeat(243)}"`
  t.equal(content_type.length, 255)
  t.equal((await send([aFile({ filename: 'é'.repeat(127), content_type })])).status, 201)
})

t.test('a quoted parameter of a type can contain a semicolon', async (t) => {
  const content_type = 'application/pdf; x="a;b"; y=c'
  const { status, body } = await send([aFile({ content_type })])
  t.equal(status, 201, body.error?.message)
  t.match(body.attachments, [{ content_type }])
})

t.test('each content is stored once per team', async (t) => {
  const own = await makeTeam(service)
  const content = base64('x'.repeat(600_000))
  const attachments = [aFile({ content }), aFile({ content, filename: 'again.pdf' })]
  const emails = Array.from({ length: 3 }, () => anEmail({ attachments }))
  t.ok((await batch(emails, own.key)).body.data.every((item: { id?: string }) => item.id))
  t.equal((await send(attachments, {}, own.key)).status, 201)
  t.strictSame(await stored(own), { files: 1, bytes: 600_000, chunks: 600_000, used: 600_000 })
  const other = await makeTeam(service)
  t.equal((await send(attachments, {}, other.key)).status, 201)
  t.equal((await stored(other)).used, 600_000)
})

t.test('concurrent sends of one content store and charge it once', async (t) => {
  const own = await makeTeam(service)
  const replies = await Promise.all(Array.from({ length: 12 }, () => send([aFile()], {}, own.key)))
  t.ok(replies.every(({ status }) => status === 201))
  t.strictSame(await stored(own), { files: 1, bytes: 8, chunks: 8, used: 8 })
})

t.test('rejected sends and replays store no files', async (t) => {
  const own = await makeTeam(service, { email_limit: 1 })
  const nothing = { files: 0, bytes: 0, chunks: 0, used: 0 }
  const key = { idempotency_key: 'k' }
  t.equal((await send([aFile()], { from: 'a@example.net' }, own.key)).status, 422)
  t.equal((await send([aFile()], { headers: { To: 'x' } }, own.key)).body.error.code, 'invalid_headers')
  t.strictSame(await stored(own), nothing)
  t.equal((await send(undefined, key, own.key)).status, 201)
  t.equal((await send([aFile()], key, own.key)).status, 200)
  t.equal((await send([aFile()], {}, own.key)).body.error.code, 'quota_exceeded')
  t.strictSame(await stored(own), nothing)
})

t.test('rejects an oversized message after its shape', async (t) => {
  const content = Buffer.alloc(7_000_000).toString('base64')
  service.deps.attachments.message_bytes = 9_000_000
  t.teardown(() => {
    service.deps.attachments.message_bytes = 25 * 1024 * 1024
  })
  const one = await send([aFile({ content })], { from: 'nobody' })
  t.equal(`${one.status} ${one.body.error.code}`, '413 payload_too_large')
  const two = await send([aFile({ content, filename: 'a.js' })], { from: 'nobody' })
  t.equal(two.body.error.code, 'bad_request')
  const { body } = await batch([anEmail(), anEmail({ attachments: [aFile({ content })] })])
  t.ok(body.data[0].id)
  t.equal(body.data[1].error.code, 'payload_too_large')
  t.ok(body.data[1].error.message.startsWith('emails[1].attachments'))
})

t.test('a replay shows the stored attachments', async (t) => {
  const first = await send([aFile()], { idempotency_key: 'replayed' })
  const again = await send([aFile({ filename: 'b.pdf' })], { idempotency_key: 'replayed' })
  t.equal(again.status, 200)
  t.strictSame(again.body.attachments, first.body.attachments)
})

t.test('reports an unknown upload after the template, before its variables', async (t) => {
  const missing = [{ attachment_id: '01920000-0000-7000-8000-000000000000' }]
  const { status, body } = await send(missing)
  t.equal(`${status} ${body.error.code}`, '404 not_found')
  t.ok(body.error.message.startsWith('attachments[0].attachment_id'))
  const template_id = '01920000-0000-7000-8000-000000000001'
  const none = await send(missing, { template_id })
  t.ok(none.body.error.message.startsWith('template_id'))
  t.equal((await send(missing, { from: 'a@example.net' })).status, 422)
  t.equal((await send(missing, {}, await makeKey(service, team.id, { domain: 'other.test' }))).status, 403)
})
