/** Feedback reports in the standard form, and forwarded messages at fbl@. */
import { unsubscribeToken } from '../../../../db/messages/emails/unsubscribe-token.ts'
import { feedbackReport } from '../../../sandbox/reports.ts'
import {
  at,
  faultOf,
  GONE,
  keysOf,
  mail_from,
  raw,
  readBytes,
  ref,
  report,
  reported_at,
  secrets,
} from '../../../support/mail-reports.ts'
import t from '../../../support/tap.ts'

t.test("a complaint needs no recipient, not-spam doesn't count", async (t) => {
  const about = { mail_from, recipient: 'ana@example.org', raw, at }
  const complaint = {
    channel: 'email',
    ref,
    kind: 'complained',
    effect: 'complaint',
    occurred_at: reported_at,
  }
  t.match(await readBytes(feedbackReport(about)), [{ ...complaint, recipient: 'ana@example.org' }])
  t.match(await readBytes(feedbackReport(about, 'ABUSE')), [{ ...complaint, recipient: 'ana@example.org' }])
  t.match(await readBytes(feedbackReport(about, 'fraud')), [{ ...complaint, recipient: 'ana@example.org' }])
  const redacted = await readBytes(feedbackReport(about, 'abuse', { redacted: true }))
  t.match(redacted, [{ ...complaint, recipient: null }], 'found by the Return-Path of the message')
  const readFeedback = (fields: string) =>
    readBytes(report(mail_from, `Feedback-Type: abuse\r\n${fields}`, 'message/feedback-report'))
  for (const [fields, detail] of [
    ['', 'abuse'],
    ['User-Agent: Loop/1\r\n', 'abuse: Loop/1'],
    ['User-Agent: Loop/1\r\nReported-Domain: example.com\r\n', 'abuse: example.com'],
  ] as const)
    t.match(await readFeedback(fields), [{ detail: new RegExp(`^${detail}$`) }])
  const to = (...names: string[]) =>
    names.map((name) => `Original-Rcpt-To: <${name}@example.org>\r\n`).join('')
  const [ana, ben] = keysOf(await readFeedback(to('ana', 'ben')))
  t.not(ana, ben, 'each recipient’s has a key of its own')
  t.strictSame(keysOf(await readFeedback(to('Ana'))), [ana], 'and the same one in another report')
  t.equal((await readFeedback(to('ana').repeat(200))).length, 1)
  t.same(await readBytes(feedbackReport(about, 'not-spam')), [])
  t.same(await readBytes(feedbackReport(about, 'auth-failure')), [])
})

t.test('any signed reference matches a complaint at fbl@', async (t) => {
  const reference = mail_from.split('@', 1)[0] ?? ''
  const token = unsubscribeToken(secrets, { ...ref, person: 'ana@example.org' })
  const at = (to: string, message: string, head = '') =>
    readBytes(
      `To: ${to}\r\nFrom: staff@hotmail.example\r\n${head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n` +
        `Content-Type: message/rfc822\r\n\r\n${message}\r\n\r\nHello\r\n--b--\r\n`,
    )
  const complained = [{ kind: 'complained', effect: 'complaint', ref }]
  for (const header of [
    `X-Heliograph-Ref: ${reference}`,
    `CFBL-Feedback-ID: ${reference}`,
    `Return-Path: <${mail_from}>`,
    `List-Unsubscribe: <https://x.example/u/${token}>`,
  ])
    t.match(await at('fbl@bounces.example.com', header), complained, header)
  for (const to of ['fbl@bounces.example.com', 'abuse@bounces.example.com', 'postmaster@bounces.example.com'])
    t.match(await faultOf(at(to, 'Subject: x')), { outcome: 'ignored', kept: false }, to)
  t.match(await faultOf(at('abuse@bounces.example.com', `X-Heliograph-Ref: ${reference}`)), {
    outcome: 'ignored',
  })
  const jmrp = await at(mail_from, 'Subject: x\r\nX-HmXmrOriginalRecipient: eve@hotmail.example')
  t.match(jmrp, [{ kind: 'complained', ref, recipient: 'eve@hotmail.example' }])
  const bounce = await readBytes(
    `Delivered-To: fbl@bounces.example.com\r\n${report('x@example.com', GONE, undefined, [['message/rfc822', `X-Heliograph-Ref: ${reference}`]])}`,
  )
  t.match(bounce, [{ kind: 'bounced', effect: 'hard', ref }])
})
