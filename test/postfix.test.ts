/**
 * A real Postfix between the service and the recipients: it bounces an email to a bad recipient, and its
 * notification, piped to the hook, marks email and contact. Complaints come the same way. The first session of
 * db/README.md runs against it as written. Skipped with a message if Postfix can't run.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { startDns } from './support/dns.ts'
import { bareEnvironment, SECRET_KEY } from './support/environment.ts'
import { postfixMissing, startPostfix } from './support/postfix.ts'
import { programMissing } from './support/programs.ts'
import { contactState, emailStatus, eventsOf, storeContact, storedReports } from './support/reports.ts'
import { METRICS_TOKEN, SMTP_REPORT_TOKEN, sendEmail, startService, world } from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import { ROOT } from './support/sources.ts'
import t, { type Test } from './support/tap.ts'
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
    const id = await sendEmail(service, team, { to: [to] })
    ids.push(id)
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
  const bounce = (await eventsOf(service, gone)).find(({ kind }) => kind === 'bounced')
  t.match(bounce, { recipient: 'gone@example.org', detail: /550 5\.1\.1 There is no such mailbox/ })
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

/** Replies of three providers, and the status of the contact after each. */
const REPLIES: Readonly<Record<string, readonly [reply: string, status: string]>> = {
  'gone@google.test': [
    '550 5.1.1 The email account that you tried to reach does not exist. - gsmtp',
    'bounced',
  ],
  'full@google.test': ["552 5.2.2 The recipient's inbox is out of storage space. - gsmtp", 'subscribed'],
  'unsigned@google.test': ['550 5.7.26 Blocked because the sender is unauthenticated. - gsmtp', 'subscribed'],
  'gone@outlook.test': [
    '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).',
    'bounced',
  ],
  'denied@outlook.test': ['550 5.4.1 Recipient address rejected: Access denied.', 'bounced'],
  'listed@outlook.test': ['550 5.7.1 Part of their network is on our block list (S3140).', 'subscribed'],
  'gone@yahoo.test': ["554 delivery error: dd This user doesn't have a yahoo.com account", 'bounced'],
  'policy@yahoo.test': ['554 5.7.9 Message not accepted for policy reasons.', 'subscribed'],
}

t.test('replies of Gmail, Outlook.com and Yahoo through Postfix', { skip: missing ?? false }, async (t) => {
  const { service, team } = await world(t)
  const outside = await startSmtpSink(t, { onRcpt: (recipient) => REPLIES[recipient]?.[0] })
  const postfix = await startPostfix(t, {
    relay_port: outside.port,
    collects: { hook: `${service.base}/hooks/smtp`, token: SMTP_REPORT_TOKEN },
  })
  await startWorker(t, service, { smtp_url: postfix.url, return_domain: 'bounces.example.com' })
  for (const [to, [reply, expected]] of Object.entries(REPLIES)) {
    await storeContact(service, team.id, to)
    const id = await sendEmail(service, team, { to: [to] })
    await until(`${to} bounces`, async () => (await emailStatus(service, id)) === 'bounced', 60)
    t.equal((await contactState(service, team.id, to)).status, expected, reply)
  }
})

/** Starts the commands of *The first session* with a service's settings. `sleep N` ends with the file `go-N`. */
async function startFirstSession(t: Test, base: string, settings: Record<string, string>) {
  const readme = await readFile(join(ROOT, 'db/README.md'), 'utf8')
  const [, block = ''] = /^### The first session\n[\s\S]*?```sh\n([\s\S]*?)```/m.exec(readme) ?? []
  const home = await mkdtemp(join(tmpdir(), 'heliograph-session-'))
  for (const name of ['package.json', 'node_modules', 'db', 'workers'])
    await symlink(join(ROOT, name), join(home, name))
  await writeFile(
    join(home, '.env'),
    Object.entries(settings)
      .map(([name, value]) => `${name}='${value}'\n`)
      .join(''),
  )
  const waits = 'sleep() { until [ -e "go-$1" ]; do command sleep 0.2; done; }'
  const commands = `${waits}\n${block.replaceAll('https://mail.example.com', base)}`
  const bash = spawn('bash', ['-e', '-c', commands], {
    ...{ cwd: home, env: bareEnvironment(), detached: true },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [bash.stdout, bash.stderr])
    stream.on('data', (text) => {
      output += text
    })
  const exited = once(bash, 'close').then(([code]) => code as number | null)
  t.teardown(async () => {
    if (bash.exitCode === null && bash.pid) process.kill(-bash.pid, 'SIGKILL')
    await exited
    await rm(home, { recursive: true, force: true })
  })
  return { output: () => output, exited, go: (seconds: number) => writeFile(join(home, `go-${seconds}`), '') }
}

const sessionMissing =
  missing ?? (await programMissing('jq', 'jq')) ?? (await programMissing('promtool', 'prometheus'))

t.test('the first session works as documented', { skip: sessionMissing ?? false }, async (t) => {
  const service = await startService(t)
  const dns = await startDns(t)
  const outside = await startSmtpSink(t, {
    onRcpt: (to) => (to.startsWith('nobody-here@') ? '550 5.1.1 There is no such mailbox' : undefined),
  })
  const return_domain = 'bounces.example.com'
  const postfix = await startPostfix(t, {
    relay_port: outside.port,
    collects: { hook: `${service.base}/hooks/smtp`, token: SMTP_REPORT_TOKEN },
  })
  await startWorker(t, service, { smtp_url: postfix.url, return_domain })
  const session = await startFirstSession(t, service.base, {
    ...{ DATABASE_URL: service.url, SECRET_KEY, METRICS_TOKEN, PUBLIC_URL: 'https://mail.example.com' },
    ...{ RETURN_PATH_DOMAIN: return_domain, DNS_SERVER: dns.address },
  })
  let isOver = false
  void session.exited.then(() => {
    isOver = true
  })
  const untilOr = (what: string, isTrue: () => boolean | Promise<boolean>) =>
    until(what, async () => isOver || (await isTrue()), 120)

  const printed = (): string | undefined => /^\[\n[\s\S]*?^\]/m.exec(session.output())?.[0]
  await untilOr('the records are printed', () => printed() !== undefined)
  await untilOr('the domain is looked up', () => /"status": "pending"/.test(session.output()))
  for (const { type, name, value } of JSON.parse(printed() ?? '[]'))
    if (type === 'TXT') dns.records.set(name, [value.match(/.{1,255}/gs)])
  await session.go(30)
  // Postfix also reports the relaying of the first.
  await untilOr('both reports are read', async () => {
    const reports = await storedReports(service)
    return reports.length === 2 && reports.every(({ state }) => state === 'done')
  })
  await session.go(60)

  t.equal(await session.exited, 0, session.output())
  t.match(session.output(), /^"sent"\n"bounced"\n"20\S+Z"$/m)
  t.match(session.output(), 'https://mail.example.com/dashboard/login/')
  t.match(session.output(), /SUCCESS: \d+ rules found/)
  t.ok(outside.messages().some(({ rcpt_to }) => rcpt_to.includes('you@example.com')))
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
