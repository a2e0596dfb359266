/** Plain-text bounces and replies to a return path. */
import { faultOf, GONE, mail_from, readBytes, ref, report } from '../../../support/mail-reports.ts'
import t from '../../../support/tap.ts'

t.test('manual and automatic replies to our address are ignored', async (t) => {
  const away = `From: ana@example.org\r\nTo: <${mail_from}>\r\n`
  for (const rest of [
    'Auto-Submitted: auto-replied\r\nSubject: x',
    'Subject: Out of office',
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
