/**
 * A real Postfix between the service and the recipients: it bounces an email to a bad recipient, and its
 * notification, piped to the hook, marks email and contact. Complaints come the same way. Skipped with a
 * message if Postfix can't run.
 */
import { createTransport } from 'nodemailer'
import { postfixMissing, startPostfix } from './support/postfix.ts'
import { contactState, emailStatus, eventsOf, storeContact, storedReports } from './support/reports.ts'
import { anEmail, SMTP_REPORT_TOKEN, world } from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import t from './support/tap.ts'
import { startWorker, until } from './support/worker.ts'

const missing = await postfixMissing()

t.test('Postfix’s bounce report marks the email and its contact', { skip: missing ?? false }, async (t) => {
  const { service, team } = await world(t)
  const outside = await startSmtpSink(t, {
    onRcpt: (recipient) => (recipient.startsWith('gone@') ? '550 5.1.1 There is no such mailbox' : undefined),
  })
  const return_domain = 'bounces.example.com'
  const postfix = await startPostfix(t, {
    relay_port: outside.port,
    collects: { hook: `${service.base}/hooks/smtp`, token: SMTP_REPORT_TOKEN },
  })
  await startWorker(t, service, { smtp_url: postfix.url, return_domain })

  const ids: string[] = []
  for (const to of ['gone@example.org', 'ana@example.org', 'eve@arrives.test']) {
    await storeContact(service, team.id, to)
    const { body } = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ to: [to] }) })
    ids.push(body.id)
  }
  const [gone = '', fine = '', arrived = ''] = ids
  const status = () => emailStatus(service, gone)
  await until('it is bounced', async () => (await status()) === 'bounced').catch(async (error) => {
    throw new Error(`${String(error)}\n${await postfix.log()}`)
  })
  t.match(await contactState(service, team.id, 'gone@example.org'), {
    status: 'bounced',
    suppression: 'bounced',
  })
  t.match(
    (await eventsOf(service, gone)).find(({ kind }) => kind === 'bounced'),
    { recipient: 'gone@example.org', detail: /550 5\.1\.1 There is no such mailbox/ },
  )
  await until('the other is delivered', async () => (await emailStatus(service, arrived)) === 'delivered', 30)
  await until('its relaying is reported', async () => (await storedReports(service)).length === 3)
  await until('all is read', async () =>
    (await storedReports(service)).every(({ state, reason }) => state === 'done' && reason === null),
  )
  const arrivals = () => outside.messages().map(({ rcpt_to }) => rcpt_to.join())
  await until('the other mail arrives', () => arrivals().includes('ana@example.org'))
  await until('it counts as sent', async () => (await emailStatus(service, fine)) === 'sent')
  t.match(await contactState(service, team.id, 'ana@example.org'), { status: 'subscribed' })

  const client = createTransport({ host: '127.0.0.1', port: postfix.port, ignoreTLS: true })
  t.teardown(() => client.close())
  const post = (to: string, raw: string) =>
    client.sendMail({ envelope: { from: 'fbl@provider.example', to: [to] }, raw })
  const [returned = ''] = outside.messages().map(({ raw }) => raw.toString('latin1'))
  for (const domain of [return_domain, 'bounces.customer.example']) {
    await post(`fbl@${domain}`, complaint(returned, domain))
    await t.rejects(post(`info@${domain}`, 'Subject: Hi\r\n\r\nHi\r\n'), { message: /550/ })
  }
  await until('both complaints are read', async () => (await storedReports(service)).length === 5)
  await until('the contact has complained', async () => {
    const { status } = await contactState(service, team.id, 'ana@example.org')
    return status === 'complained'
  })
})

/** A feedback report (RFC 5965) that hides the recipient. */
const complaint = (returned: string, domain: string): string =>
  [
    'From: fbl@provider.example',
    `To: fbl@${domain}`,
    'Subject: Abuse report',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=feedback-report; boundary="b1"',
    '',
    '--b1',
    'Content-Type: message/feedback-report',
    '',
    'Feedback-Type: abuse',
    'User-Agent: Provider/1.0',
    'Version: 1',
    'Original-Rcpt-To: redacted@example.org',
    '',
    '--b1',
    'Content-Type: message/rfc822',
    '',
    returned,
    '--b1--',
    '',
  ].join('\r\n')
