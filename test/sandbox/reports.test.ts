/** The sandbox's magic recipients, all the way: sent by a worker, reported to the hook, ingested. */
import { listenTo, RELAY_SECRETS } from '../support/relays.ts'
import { contactState, emailStatus, eventsOf, storeContact } from '../support/reports.ts'
import { anEmail, SMTP_REPORT_TOKEN, sendEmail, world } from '../support/service.ts'
import t from '../support/tap.ts'
import { startWorker, until } from '../support/worker.ts'
import { createMailgunReporter } from './relay.ts'
import { createReporter } from './reports.ts'
import { startSmtpSandbox } from './smtp.ts'

t.test('reports change an email and its contact', async (t) => {
  const { service, team } = await world(t)
  const warnings: string[] = []
  const reporter = createReporter({
    url: `${service.base}/hooks/smtp`,
    token: SMTP_REPORT_TOKEN,
    delay_ms: 50,
    warn: (line) => warnings.push(line),
  })
  const sandbox = await startSmtpSandbox({ port: 0, onAccepted: reporter })
  t.teardown(() => sandbox.close())
  const smtp_url = `smtp://127.0.0.1:${sandbox.port}`
  await startWorker(t, service, { smtp_url, simulated_recipients: true })

  const statuses: [string, string, string][] = [
    ['delivered+1@example.org', 'delivered', 'subscribed'],
    ['Bounced@example.org', 'bounced', 'bounced'],
    ['complained@example.org', 'complained', 'complained'],
    // In the SMTP dialogue itself (DECISIONS: Delivery reports).
    ['refused@example.org', 'bounced', 'bounced'],
    ['someone@example.org', 'sent', 'subscribed'],
    ['suppressed@example.org', 'bounced', 'subscribed'],
  ]
  const ids = new Map<string, string>()
  for (const [to] of statuses) {
    await storeContact(service, team.id, to)
    const id = await sendEmail(service, team, { to: [to] })
    ids.set(to, id)
  }
  for (const [to, status, contact] of statuses) {
    const id = ids.get(to) ?? ''
    await until(`${to} is ${status}`, async () => (await emailStatus(service, id)) === status)
    t.match(await contactState(service, team.id, to), { status: contact }, to)
  }
  const events = await eventsOf(service, ids.get('Bounced@example.org') ?? '')
  const bounce = events.find(({ kind }) => kind === 'bounced')
  t.match(bounce, { recipient: 'Bounced@example.org', detail: '550 5.1.1 The mailbox does not exist' })
  t.match(await eventsOf(service, ids.get('suppressed@example.org') ?? ''), [
    { kind: 'suppressed', recipient: 'suppressed@example.org', detail: /: simulated$/ },
  ])
  const body = anEmail({ to: ['bounced@example.org'] })
  const again = await service.call('POST', '/v1/emails', { key: team.key, body })
  await until('a bounced name is used again', async () =>
    (await eventsOf(service, again.body.id)).some(({ kind }) => kind === 'sent'),
  )
  t.same(warnings, [])
})

t.test("as Mailgun it reports by the message's variables", async (t) => {
  const { service, team } = await world(t)
  listenTo(service, 'mailgun')
  const warnings: string[] = []
  const onAccepted = createMailgunReporter({
    url: `${service.base}/hooks/relay`,
    secret: RELAY_SECRETS.mailgun,
    delay_ms: 50,
    warn: (line) => warnings.push(line),
  })
  const sandbox = await startSmtpSandbox({ port: 0, onAccepted })
  t.teardown(() => sandbox.close())
  await startWorker(t, service, { smtp_url: `smtp://127.0.0.1:${sandbox.port}`, hosted: 'mailgun' })
  const to = ['delivered', 'bounced', 'complained', 'opened', 'clicked']
  for (const status of to) {
    const body = anEmail({ to: [`${status}@example.org`] })
    const sent = await service.call('POST', '/v1/emails', { key: team.key, body })
    await until(`it is ${status}`, async () => (await emailStatus(service, sent.body.id)) === status)
  }
  t.same(warnings, [])
})

t.test('the envelope sender is the signed return address', async (t) => {
  const { service, team } = await world(t)
  const sandbox = await startSmtpSandbox({ port: 0 })
  t.teardown(() => sandbox.close())
  await startWorker(t, service, {
    smtp_url: `smtp://127.0.0.1:${sandbox.port}`,
    return_domain: 'bounces.example.net',
  })
  await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  await until('it arrives', () => sandbox.messages().length === 1)
  t.match(sandbox.messages()[0]?.mail_from, /^b-[0-9a-z]{62}@bounces\.example\.net$/)
})
