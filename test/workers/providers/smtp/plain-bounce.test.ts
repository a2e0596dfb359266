/** Plain-text bounces and replies to a return path. */
import type { ReportMail } from '../../../../workers/providers/smtp/mail.ts'
import { isQsbmf, readPlainBounce } from '../../../../workers/providers/smtp/plain-bounce.ts'
import { faultOf, GONE, mail_from, readBytes, ref, report } from '../../../support/mail-reports.ts'
import t from '../../../support/tap.ts'

t.test('manual and automatic replies to our address are ignored', async (t) => {
  const away = `From: ana@example.org\r\nTo: <${mail_from}>\r\n`
  for (const rest of [
    'Auto-Submitted: auto-replied\r\nSubject: x',
    'Subject: Out of office',
    'Subject: =?utf-8?Q?_Out_of_office?=',
    'Subject: =?utf-8?Q?I=E2=80=99m_out_of_office?=',
    'Subject: Auto: x',
  ])
    for (const sender of ['<>', '<ana@example.org>'])
      t.match(
        await faultOf(
          readBytes(`Return-Path: ${sender}\r\n${away}${rest}\r\n\r\n550 5.1.1 No such user\r\n`),
        ),
        { outcome: 'auto_reply', kept: true },
        rest,
      )
  t.same(await readBytes(`${away}Content-Type: text/html\r\n\r\n<p>550 5.1.1 Thanks!</p>\r\n`), [])
  t.same(await readBytes(`${away}X-Was: multipart/report\r\n\r\nI am away.\r\n`), [])
  t.same(await readBytes(`${away}Content-Type: text/plain; name="multipart/report"\r\n\r\nNo.\r\n`), [])
})

t.test('only mail servers may send bounces in other forms', async (t) => {
  const mail = (head: string, text: string, to = mail_from) =>
    readBytes(
      `Return-Path: <>\r\nDelivered-To: ${to}\r\nFrom: MAILER-DAEMON@mx.example\r\n${head}\r\n${text}`,
    )
  const qmail =
    'Hi. This is the qmail-send program at mx.example.\n\n<ana@example.org>:\nRemote host said: 550 Unknown user\n'
  t.match(await mail('', qmail), [{ kind: 'bounced', effect: 'hard', recipient: 'ana@example.org' }])
  const bare = `Return-Path: <>\r\nDelivered-To: ${mail_from}\r\nFrom: mailer-daemon\r\nAuto-Submitted: auto-replied\r\n\r\n`
  t.match(await readBytes(`${bare}It responded:\r\n550 5.1.1 User unknown\r\n`), [
    { kind: 'bounced', effect: 'hard' },
  ])
  const exim = 'Auto-Submitted: auto-replied\r\nX-Failed-Recipients: ana@example.org\r\n'
  const said =
    'The following address(es) failed:\n\n ana@example.org\n host mx.example [192.0.2.1]: 552 5.2.2 Full\n'
  t.match(await mail(exim, said), [{ kind: 'bounced', effect: 'soft', recipient: 'ana@example.org' }])
  for (const head of [exim, 'Auto-Submitted: auto-generated (not auto-replied)\r\n']) {
    const raw = `Return-Path: <>\r\nDelivered-To: ${mail_from}\r\nFrom: gateway@mx.example\r\n${head}\r\n${said}`
    t.match(await readBytes(raw), [{ kind: 'bounced', effect: 'soft' }], 'of a server with another name')
  }
  const others = 'Your email came back.\n550 5.7.1 Blocked\n\n--- original\n550 5.1.1 x\n'
  t.match(await mail('', others), [{ kind: 'bounced', effect: 'none' }], 'the first reply line')
  t.match(await faultOf(mail('', 'It did not work.\n')), { event: { kind: 'unreadable', ref } })
  const person = `Return-Path: <bo@example.net>\r\nTo: ${mail_from}\r\nFrom: bo@example.net\r\n\r\n550 5.1.1 x\r\n`
  t.same(await readBytes(person), [], 'a person quotes it')
  const mixed = report(mail_from, GONE).replace(
    'multipart/report; report-type=delivery-status',
    'multipart/mixed',
  )
  t.match(await readBytes(`Return-Path: <>\r\n${mixed}`), [{ kind: 'bounced', effect: 'hard' }])
  t.same(await readBytes(`Return-Path: <bo@example.net>\r\n${mixed}`), [], 'a person forwards its parts')
})

/** Reads a plain text with an X-Failed-Recipients header, if there is one. */
const read = (text: string, failed = '') => {
  const headers = failed === '' ? [] : [{ key: 'x-failed-recipients', value: failed }]
  return readPlainBounce({ text, email: { headers } } as unknown as ReportMail)
}

t.test('reads a plain delay notice as a delay', async (t) => {
  const mail = (text: string, head = '') =>
    readBytes(
      `Return-Path: <>\r\nDelivered-To: ${mail_from}\r\nFrom: MAILER-DAEMON@mx.example\r\n${head}\r\n${text}`,
    )
  const reply = 'host mx.example [192.0.2.1]: 451 4.7.1 Greylisted'
  for (const notice of [
    `A message that you sent has not yet been\ndelivered after 24 hours.\n\n${reply}\n`,
    `THIS IS A WARNING MESSAGE ONLY.\n\n${reply}\n`,
    `Please note that this is only a temporary failure report.\n\n${reply}\n`,
    `This message hasn’t been delivered yet.\n\n${reply}\n`,
  ])
    t.match(await mail(notice), [{ kind: 'delayed', effect: 'none', recipient: null, detail: /451 4\.7\.1/ }])
  t.match(await mail('This is a warning message only.\n'), [{ kind: 'delayed', effect: 'none' }])
  const quoted = `${reply}\n\n--- original\nThis is a warning message only.\n`
  t.match(await mail(quoted), [{ kind: 'bounced', effect: 'soft' }], 'in the returned email')
  const failed = `550 5.1.1 x\nIt has not yet been delivered.\n`
  const exim = 'X-Failed-Recipients: ana@example.org\r\n'
  t.match(await mail(failed, exim), [{ kind: 'bounced', effect: 'hard' }], 'Exim names it only in failures')
})

t.test('a reply starts with a code or a phrase, and has four lines', async (t) => {
  for (const [text, reply] of [
    ['550 5.1.1 No such user', '550 5.1.1 No such user'],
    ['Sorry.\r\n  550 5.1.1 No\ra\nb\nc\nd', '550 5.1.1 No a b c'],
    ['Sorry.\n550 5.0.0 Failed', '550 5.0.0 Failed'],
    ['Sorry.\nThe mailbox is full', 'The mailbox is full'],
    [`${'\n'.repeat(199)}550 5.1.1 x`, '550 5.1.1 x'],
  ] as const)
    t.strictSame(read(text), { recipient: null, reply }, text.trim())
  for (const text of ['It did not work.', `${'\n'.repeat(200)}550 5.1.1 x`]) t.equal(read(text), null)
})

t.test('a reply is above the returned email', async (t) => {
  for (const line of [
    ...['_'.repeat(10), 'received: by mx.example', '  Return-Path: <a@b.cc>', 'Message headers follow:'],
    ...['Original message follows.', 'The original message was', '--- Below this line is a copy'],
  ])
    t.equal(read(`Sorry.\n${line}\n550 5.1.1 x`), null, line)
  for (const line of ['_'.repeat(9), 'It was Received: once', '--- Error', 'Your original email'])
    t.match(read(`Sorry.\n${line}\n550 5.1.1 x`), { reply: '550 5.1.1 x' }, line)
  t.match(read('Received: by mx.example\n550 5.1.1 x'), { reply: '550 5.1.1 x' }, 'something is above it')
})

t.test('X-Failed-Recipients names the recipient', async (t) => {
  const recipient = 'ana@example.org'
  const failed = `${recipient}, ben@example.org`
  t.strictSame(read('It failed.\nSorry.', failed), { recipient, reply: 'It failed. Sorry.' })
  t.strictSame(read('It failed.\n552 5.2.2 Full', failed), { recipient, reply: '552 5.2.2 Full' })
})

t.test('a bounce of qmail has a paragraph per recipient', async (t) => {
  const hi = 'Hi. This is the qmail-send program at mx.example.\n'
  const ana = { recipient: 'ana@example.org', reply: 'User unknown. Given up.' }
  for (const text of [
    '<ana@example.org>:\nUser unknown.\nGiven up.',
    '<ana@example.org>:  \nUser unknown.\nGiven up.\n \n<ben@example.org>:\nFull.',
    'To <eve@example.org>:\n<eve@example.org>: no\n<ana@example.org>:\nUser unknown.\nGiven up.\n\nBye.',
  ])
    t.strictSame(read(hi + text), ana, text)
  t.strictSame(read(`${hi}<ana@example.org>:\n\nBye.`), { ...ana, reply: '' })
  t.strictSame(read('Hi. The program failed.\n\nBye.'), {
    recipient: null,
    reply: 'Hi. The program failed.  Bye.',
  })
  t.ok(isQsbmf('\n Hi. The '))
  for (const text of ['Oh, Hi. This ', 'xHi. This ', 'Hi. That ']) t.notOk(isQsbmf(text), text)
})
