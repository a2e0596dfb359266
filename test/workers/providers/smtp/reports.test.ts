/** The meaning of mail servers' delivery status notifications, byte by byte, and other input. */
import { deliveryStatus, feedbackReport, type RecipientFields } from '../../../sandbox/reports.ts'
import {
  at,
  GONE,
  keysOf,
  mail_from,
  raw,
  readBytes,
  received_at,
  ref,
  report,
  reported_at,
} from '../../../support/mail-reports.ts'
import t from '../../../support/tap.ts'

const readStatus = async (status: RecipientFields, recipient = 'ana@example.org') =>
  await readBytes(deliveryStatus({ mail_from, raw, at }, [{ recipient, ...status }]))

t.test('a status class decides the effect on email and contact', async (t) => {
  const classes: [RecipientFields, string, string][] = [
    [{ action: 'failed', status: '5.1.1' }, 'bounced', 'hard'],
    [{ action: 'failed', status: '5.0.0' }, 'bounced', 'soft'],
    [{ action: 'failed', status: '5.4.4' }, 'bounced', 'soft'],
    [{ action: 'failed', status: '5.2.1' }, 'bounced', 'soft'],
    [{ action: 'failed', status: '5.2.2' }, 'bounced', 'soft'],
    [{ action: 'failed', status: '5.3.4' }, 'bounced', 'none'],
    [{ action: 'failed', status: '5.6.1' }, 'bounced', 'none'],
    [{ action: 'failed', status: '5.7.1' }, 'bounced', 'none'],
    [{ action: 'failed', status: '5.7.26' }, 'bounced', 'none'],
    [{ action: 'failed', status: '5.1.7' }, 'bounced', 'none'],
    [{ action: 'failed', status: '5.1.8' }, 'bounced', 'none'],
    [{ action: 'failed', status: '4.4.7' }, 'bounced', 'soft'],
    [{ action: 'failed', status: '4.2.2' }, 'bounced', 'soft'],
    // A policy rejection blurred by the relay is still one.
    [{ action: 'failed', status: '5.0.0', diagnostic: '550 5.7.1 Blocked' }, 'bounced', 'none'],
    [{ action: 'failed', status: '5.0.0', diagnostic: '550 #5.7.1 Blocked by a gateway' }, 'bounced', 'none'],
    [{ action: 'failed', status: '5.0.0', diagnostic: '554 4.7.1 Odd' }, 'bounced', 'soft'],
    [{ action: 'failed', status: '5.0.0', diagnostic: '550 No such user' }, 'bounced', 'hard'],
    [{ action: 'failed', status: '', diagnostic: '550 5.1.1 Gone' }, 'bounced', 'hard'],
    [{ action: 'failed', status: 'unknown', diagnostic: '452 Later' }, 'bounced', 'soft'],
    [{ action: 'failed', status: '' }, 'bounced', 'soft'],
    [{ action: 'delayed', status: '4.4.1' }, 'delayed', 'none'],
    [{ action: 'delivered', status: '2.0.0' }, 'delivered', 'delivered'],
    [{ action: 'expanded', status: '2.1.5' }, 'delivered', 'delivered'],
    [{ action: 'relayed', status: '2.0.0' }, 'sent', 'none'],
  ]
  for (const [status, kind, effect] of classes) {
    const events = await readStatus(status)
    t.match(
      events,
      [{ channel: 'email', ref, kind, effect, recipient: 'ana@example.org', occurred_at: reported_at }],
      JSON.stringify(status),
    )
  }
})

t.test("the server’s reply has precedence over the report's status", async (t) => {
  for (const [fields, code] of [
    ['Status: (smtp) 5.1.10 (gone)', '5.1.10'],
    ['Status: 5.100.1', '5.100.1'],
    ['Status: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.7.1 Blocked', '5.7.1'],
    ['Status: 5.0.0\r\nDiagnostic-Code: smtp; 5.7.1 Blocked', '5.7.1'],
    ['Status: 5.0.0\r\nDiagnostic-Code: smtp; 550 Host 5.7.1 unknown', '5.7.1'],
    ['Diagnostic-Code: smtp; 550 5.700.126 Blocked', '5.700.126'],
    ['Diagnostic-Code: 5.7.1; Blocked', '5.7.1'],
    ['Diagnostic-Code: smtp; host says 550', ''],
    ['Status: none', ''],
  ] as const) {
    const [event] = await readBytes(report(mail_from, `X: y\r\n\r\nAction: failed\r\n${fields}\r\n`))
    t.match(event, { recipient: null, kind: 'bounced', by_mail: true, event_key: `:${code}:` }, fields)
  }
})

t.test('each recipient keeps its own status, message and time', async (t) => {
  const events = await readBytes(
    deliveryStatus({ mail_from, raw, at }, [
      {
        recipient: 'ana@example.org',
        action: 'failed',
        status: '5.1.1',
        diagnostic: '550 5.1.1 <ana> unknown',
      },
      { recipient: 'ben@example.org', action: 'delivered', status: '2.1.5' },
      { recipient: 'eve@example.org', action: 'delivered', status: '2.1.5' },
    ]),
  )
  t.match(events, [
    {
      recipient: 'ana@example.org',
      kind: 'bounced',
      detail: '550 5.1.1 <ana> unknown',
      occurred_at: reported_at,
    },
    { recipient: 'ben@example.org', kind: 'delivered', detail: 'delivered 2.1.5' },
    { recipient: 'eve@example.org' },
  ])
  t.equal(new Set(keysOf(events)).size, 3)
})

t.test('the same status always has the same key', async (t) => {
  const keyOf = async (status: RecipientFields, at: Date) => {
    const body = deliveryStatus({ mail_from, raw, at }, [{ recipient: 'ana@example.org', ...status }])
    return keysOf(await readBytes(body))[0]
  }
  const later = new Date('2026-03-01T11:59:30Z')
  const failed: RecipientFields = { action: 'failed', status: '5.1.1' }
  t.equal(await keyOf(failed, at), await keyOf(failed, later))
  const delayed: RecipientFields = { action: 'delayed', status: '4.4.1' }
  t.not(await keyOf(delayed, at), await keyOf(delayed, later))
})

t.test('recipients are read in every form that servers use', async (t) => {
  const forms: [string, string][] = [
    ['Final-Recipient: rfc822; ana@example.org', 'ana@example.org'],
    ['Final-Recipient: RFC822;<ana@example.org>', 'ana@example.org'],
    ['Final-Recipient: ana@example.org', 'ana@example.org'],
    [
      'Original-Recipient: rfc822;ana@example.org\r\nFinal-Recipient: rfc822;a@forward.test',
      'ana@example.org',
    ],
    [
      'Original-Recipient: rfc822;ana+2Btag@example.org\r\nFinal-Recipient: rfc822;x@y.zz',
      'ana+tag@example.org',
    ],
    [
      'Original-Recipient: rfc822;a+2Bt@example.org\r\nFinal-Recipient: rfc822;a+2Bt@example.org',
      'a+2Bt@example.org',
    ],
    [
      'Original-Recipient: rfc822;ana+tag@example.org\r\nFinal-Recipient: rfc822;x@y.zz',
      'ana+tag@example.org',
    ],
    ['Final-Recipient: utf-8; ana@b\\x{FC}cher.test', 'ana@bücher.test'],
    ['Final-Recipient: utf-8; ana@bücher.test', 'ana@bücher.test'],
    ['Final-Recipient:\r\n rfc822;\r\n\tana@example.org', 'ana@example.org'],
  ]
  for (const [lines, recipient] of forms) {
    const [event] = await readBytes(
      report(mail_from, `Reporting-MTA: dns; x\r\n\r\n${lines}\r\nAction: failed\r\nStatus: 5.1.1\r\n`),
    )
    t.match(event, { recipient, kind: 'bounced', effect: 'hard', occurred_at: reported_at }, lines)
  }
  const global = await readBytes(
    report(
      mail_from,
      'Reporting-MTA: dns; x\n\nFinal-Recipient: utf-8; ana@example.org\nAction: FAILED\nStatus: 5.1.1 (gone)\n',
      'message/global-delivery-status',
    ),
  )
  t.match(global, [{ recipient: 'ana@example.org', kind: 'bounced' }], 'bare line feeds, RFC 6533')
  const merged = await readBytes(
    report(
      mail_from,
      'Reporting-MTA: dns; x\r\nFinal-Recipient: rfc822;a@b.cc\r\nAction: delivered\r\nStatus: 2.0.0\r\n',
    ),
  )
  t.match(merged, [{ recipient: 'a@b.cc', kind: 'delivered' }], 'one group for message and recipient')
})

t.test('an implausible date becomes the report’s time', async (t) => {
  const read = (date: string) => report(mail_from, `${GONE}Last-Attempt-Date: ${date}\r\n`)
  const [own] = await readBytes(read('Sun, 01 Mar 2026 10:00:00 +0000'))
  t.match(own, { occurred_at: '2026-03-01T10:00:00.999Z' })
  for (const date of [
    '',
    'tomorrow',
    'Mon, 01 Jan 2035 00:00:00 +0000',
    'Thu, 01 Jan 1970 00:00:00 +0000',
    '9'.repeat(500),
  ]) {
    const [event] = await readBytes(read(date).replace(/^Date: .*\r\n/, ''))
    t.match(event, { occurred_at: received_at.toISOString() }, date.slice(0, 40))
  }
})

t.test('only reports with our address count', async (t) => {
  const plain = report('x@example.com', GONE)
  await t.rejects(readBytes(plain), /no signed reference to one of our emails/)
  for (const name of ['Delivered-To', 'X-Original-To', 'Envelope-To'])
    t.match(await readBytes(`${name}: ${mail_from}\r\n${plain}`), [{ ref, kind: 'bounced' }], name)
  t.match(await readBytes(report(`\r\n <${mail_from}>`, GONE)), [{ ref }], 'folded')
  const forged = mail_from.replace(/^b-./, (start) => (start === 'b-0' ? 'b-1' : 'b-0'))
  await t.rejects(readBytes(report(forged, GONE)), /no signed reference to one of our emails/)
})

t.test('our address counts in returned headers, not bodies', async (t) => {
  const returning = (...returned: (readonly [string, string])[]) =>
    readBytes(report('x@example.com', GONE, undefined, returned))
  const header = `Return-Path: <${mail_from}>\n`
  for (const type of ['message/rfc822', 'text/rfc822-headers', 'message/global', 'message/global-headers'])
    t.match(await returning([type, header]), [{ ref }], type)
  const other = ['message/rfc822', 'A: b\n'] as const
  for (const parts of [
    [['application/octet-stream', header]],
    [['message/rfc822', `A: b\n\n${header}`]],
    [other, other, other, other, ['message/rfc822', header]],
  ] as const)
    await t.rejects(returning(...parts), /no signed reference to one of our emails/)
})

t.test('rejects non-reports and unknown forms with the reason', async (t) => {
  const cases: [Buffer | string, RegExp][] = [
    ['', /neither a delivery status/],
    ['\0\0\0', /neither a delivery status/],
    ['To: x@example.com\r\nSubject: Hello\r\n\r\nHello.\r\n', /neither a delivery status/],
    [`To: ${mail_from}\r\nContent-Type: multipart/report; boundary=x\r\n\r\nNo.\r\n`, /neither a delivery/],
    [report(mail_from, 'Reporting-MTA: dns; x\r\n'), /has no recipient/],
    [report(mail_from, ''), /neither|no recipient/],
    [
      report(mail_from, 'Final-Recipient: rfc822;a@b.cc\r\nAction: exploded\r\nStatus: 5.1.1\r\n'),
      /unknown action: exploded/,
    ],
    [
      report(mail_from, report(mail_from, GONE).replaceAll('b1', 'b2'), 'message/rfc822'),
      /neither a delivery/,
    ],
    [feedbackReport({ mail_from, recipient: 'a@b.cc', raw }, ''), /has no type/],
    [
      report(
        mail_from,
        `Feedback-Type: abuse\r\n${'Original-Rcpt-To: <a@b.cc>\r\n'.repeat(201)}`,
        'message/feedback-report',
      ),
      /too many recipients/,
    ],
    [
      report(
        mail_from,
        `x: y\r\n\r\n${'Final-Recipient: rfc822;a@b.cc\r\nAction: failed\r\n\r\n'.repeat(5_000)}`,
      ),
      /more than 201 parts/,
    ],
    [`A: ${'b'.repeat(300_000)}\r\n\r\n`, /the message can't be parsed/],
  ]
  for (const [body, reason] of cases) await t.rejects(readBytes(body), reason, String(reason))
  const nested = Array.from(
    { length: 400 },
    (_, at) => `Content-Type: multipart/mixed; boundary="b${at}"\r\n\r\n--b${at}\r\n`,
  )
  await t.rejects(readBytes(nested.join('')), /nesting/)
})

t.test('reads reports up to 20,000 lines, half a mebibyte', async (t) => {
  for (const [lines, length, isRead] of [
    [19_900, 1, true],
    [20_100, 1, false],
    [5_000, 100, true],
    [5_300, 100, false],
  ] as const) {
    const before = `${'x'.repeat(length)}\n`.repeat(lines)
    const reading = readBytes(report(mail_from, GONE).replace('--b1', `${before}--b1`))
    if (isRead) t.match(await reading, [{ ref }])
    else await t.rejects(reading, /neither a delivery/)
  }
})
