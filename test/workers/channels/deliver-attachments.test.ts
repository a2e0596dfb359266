/** Delivery of attachments: bytes in are bytes out, for any number, size, name and type. */
import { randomBytes } from 'node:crypto'
import type { Email } from 'postal-mime'
import { Resend } from 'resend'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { startInbox } from '../../sandbox/inbox.ts'
import { verifyDkim } from '../../support/dkim.ts'
import { publicKeyOf } from '../../support/domain.ts'
import { makeTeam, sendEmail } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

async function begin(t: Test, script: Parameters<typeof startSmtpSink>[1] = {}, options = {}) {
  const service = await renewed()
  const sink = await startSmtpSink(t, script, options)
  return { service, sink, team: await makeTeam(service), smtp_url: sink.url }
}

const bytesOf = (mail: Email, filename: string): Buffer => {
  const part = mail.attachments.find((each) => each.filename === filename)
  if (!part || typeof part.content === 'string') throw new Error(`there is no ${filename}`)
  return Buffer.from(part.content as ArrayBuffer)
}

const sizesFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index)

t.test('files of every size arrive unchanged with valid DKIM', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  const edges = [57 * 76, 262_200, 262_200 * 2, 262_200 * 3].flatMap((size) => [size - 1, size, size + 1])
  const batches = [...Array.from({ length: 50 }, (_, batch) => sizesFrom(1 + batch * 20, 20)), edges]
  const sent = new Map<string, Buffer>()
  await Promise.all(
    batches.map((sizes) => {
      const attachments = sizes.map((size) => {
        const bytes = randomBytes(size)
        sent.set(`${size}.bin`, bytes)
        return { filename: `${size}.bin`, content: bytes.toString('base64') }
      })
      return sendEmail(service, team, { attachments })
    }),
  )
  await startWorker(t, service, { smtp_url })
  await until('all are sent', () => sink.messages().length === batches.length)
  const key = await publicKeyOf(service, team.id)
  let seen = 0
  for (const message of sink.messages()) {
    const { body_matches, signature_matches } = verifyDkim(message.raw, key)
    t.ok(body_matches && signature_matches)
    const mail = await message.parsed()
    const wrong = mail.attachments.filter(({ filename }) => {
      seen += 1
      return !bytesOf(mail, filename ?? '').equals(sent.get(filename ?? '') ?? Buffer.alloc(0))
    })
    t.strictSame(wrong, [])
  }
  t.equal(seen, sent.size)
})

t.test('names in any language, typed and inline parts arrive intact', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  await startWorker(t, service, { smtp_url })
  const names = ['Rechnung Grüße.pdf', '請求書.pdf', 'a"b;c=d.pdf', `${'long '.repeat(45)}.pdf`, 'plain.pdf']
  await sendEmail(service, team, {
    html: '<img src="cid:logo@x">',
    text: 'Hello',
    attachments: [
      ...names.map((filename) => ({ filename, content: 'QQ==' })),
      { filename: 'logo.png', content: 'Qg==', content_id: 'logo@x' },
      { filename: 'meet.ics', content: 'Qwo=', content_type: 'text/calendar; method=REQUEST; charset=utf-8' },
    ],
  })
  await until('it is there', () => sink.messages().length === 1)
  const mail = await sink.last().parsed()
  const filenames = mail.attachments.map(({ filename }) => filename ?? '').toSorted()
  t.strictSame(filenames, ['', ...names, 'logo.png', 'meet.ics'].toSorted())
  const invitations = mail.attachments.filter(({ mimeType }) => mimeType === 'text/calendar')
  t.strictSame(
    invitations.map(({ filename, disposition, content }) => [
      filename ?? '',
      disposition,
      Buffer.from(content as ArrayBuffer).toString(),
    ]),
    [
      ['', null, 'C\n'],
      ['meet.ics', 'attachment', 'C\n'],
    ],
    'the last alternative, and a file',
  )
  const logo = mail.attachments.find(({ filename }) => filename === 'logo.png')
  t.match(logo, { contentId: '<logo@x>', disposition: 'inline', related: true, mimeType: 'image/png' })
  const ics = sink.last().raw.toString('latin1')
  t.match(ics, /^Content-Type: text\/calendar; method=REQUEST; charset=utf-8;/m)
  t.match(ics, /^Content-Type: multipart\/mixed;/m)
  t.ok(ics.split('\r\n').every((line) => line.length <= 998 && !/[^\0-\x7f]/.test(line)))
})

t.test('a size limit bounces the email, not the contact', async (t) => {
  let began = 0
  const script = {
    onMessage: () => {
      began += 1
      return undefined
    },
  }
  const { service, sink, team, smtp_url } = await begin(t, script, { server: { size: 100_000 } })
  await service.call('POST', '/v1/contacts', { key: team.key, body: { email: 'someone@example.org' } })
  await startWorker(t, service, { smtp_url })
  const content = Buffer.alloc(100_000).toString('base64')
  const id = await sendEmail(service, team, { attachments: [{ filename: 'a.bin', content }] })
  const status = async () => (await emailById(service.database, team.id, id))?.status
  await until('it is bounced', async () => (await status()) === 'bounced')
  t.equal(sink.messages().length + began, 0)
  const contact = await service.call('GET', '/v1/contacts/someone@example.org', { key: team.key })
  t.equal(contact.body.status, 'subscribed')
})

t.test('552 and "too large" concern only the message', async (t) => {
  const replies = [
    '552 no',
    '552 5.3.4 too big',
    '554 5.7.1 Message too large',
    '550 message size exceeds limit',
  ]
  const { service, team, smtp_url } = await begin(t, { onMessage: () => replies.shift() })
  await service.call('POST', '/v1/contacts', { key: team.key, body: { email: 'someone@example.org' } })
  await startWorker(t, service, { smtp_url, concurrency: 1 })
  for (let left = replies.length; left > 0; left--) {
    const id = await sendEmail(service, team, { attachments: [{ filename: 'a.bin', content: 'QQ==' }] })
    const status = async () => (await emailById(service.database, team.id, id))?.status
    await until('it is bounced', async () => (await status()) === 'bounced')
  }
  const contact = await service.call('GET', '/v1/contacts/someone@example.org', { key: team.key })
  t.equal(contact.body.status, 'subscribed')
})

t.test('the Resend client delivers files byte for byte', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  const client = new Resend(team.key, { baseUrl: `${service.base}/v1` })
  const [file, picture] = [randomBytes(1_000), randomBytes(77)]
  const { error } = await client.emails.send({
    from: 'hello@example.com',
    to: ['ana@example.org'],
    subject: 'Files',
    html: '<img src="cid:logo">',
    attachments: [
      { filename: 'a.bin', content: file },
      { filename: 'logo.png', content: picture, contentId: 'logo' },
    ],
  })
  t.equal(error, null)
  await startWorker(t, service, { smtp_url })
  await until('it is sent', () => sink.messages().length === 1)
  const mail = await sink.messages()[0]?.parsed()
  if (!mail) throw new Error('nothing was received')
  t.ok(bytesOf(mail, 'a.bin').equals(file))
  t.ok(bytesOf(mail, 'logo.png').equals(picture))
  t.equal(mail.attachments.find(({ filename }) => filename === 'logo.png')?.contentId, '<logo>')
  const message = sink.messages()[0]
  const inbox = await startInbox({ port: 0, sandbox: { messages: sink.messages, clear() {} } })
  t.teardown(() => inbox.close())
  const base = `http://127.0.0.1:${inbox.port}`
  const place = mail.attachments.findIndex(({ filename }) => filename === 'a.bin')
  const path = `/messages/${message?.id}/attachments/${place}`
  t.match(await (await fetch(`${base}/?id=${message?.id}`)).text(), `<a href="${path}">a.bin</a>`)
  const saved = await fetch(base + path)
  t.ok(Buffer.from(await saved.arrayBuffer()).equals(file), 'the inbox of the sandbox has it')
  t.equal(saved.headers.get('content-type'), 'application/octet-stream')
  t.equal(saved.headers.get('content-disposition'), 'attachment; filename="a.bin"')
  t.equal((await fetch(`${base}/messages/${message?.id}/attachments/9`)).status, 404)
})
