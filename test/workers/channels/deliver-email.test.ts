/**
 * Delivery of emails: contents, retries, concurrency, and the effect of kills. With real workers and a real
 * SMTP server.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { createVersions } from '../../../db/content/templates/versions.ts'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { queueStatus } from '../../../db/queue/jobs.sql.ts'
import type { EmailProvider } from '../../../workers/providers/provider.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { openPool } from '../../support/pool.ts'
import { ageByADay, jobStates, loseVersions, sentCount, setJobsDue } from '../../support/rows.ts'
import { anEmail, byCli, makeTeam, type Service, sendEmail, type TestTeam } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startProcess, startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const rowOf = async ({ database }: Service, team: TestTeam, id: string) => {
  const row = await emailById(database, team.id, id)
  if (!row) throw new Error('the row is gone')
  return row
}
const kinds = async ({ database }: Service, team: TestTeam, id: string) =>
  (await eventsOfEmail(database, team.id, id)).map(({ kind, recipient }) => `${kind} ${recipient}`)

async function begin(t: Test, script: Parameters<typeof startSmtpSink>[1] = {}) {
  const service = await renewed()
  const sink = await startSmtpSink(t, script)
  return { service, sink, team: await makeTeam(service), smtp_url: sink.url }
}

t.test('records sends despite an unstorable id or response', async (t) => {
  const { service, team } = await begin(t)
  const email: EmailProvider = {
    test: false,
    signs: true,
    bufferedCopies: 0,
    send: async ({ recipients }) => ({
      provider_message_id: 'bad\u0000id',
      outcomes: new Map(recipients.map((to) => [to, { kind: 'accepted', detail: 'a\u0000b' }])),
    }),
    sender: async () => ({ key: 'smtp:odd', ceiling: 100 }),
    check: async () => null,
    close: async () => {},
  }
  await startWorker(t, service, { email })
  const id = await sendEmail(service, team)
  await until('it is sent', async () => (await rowOf(service, team, id)).status === 'sent')
  t.match(await rowOf(service, team, id), { provider_message_id: null })
  t.match(await eventsOfEmail(service.database, team.id, id), [{ kind: 'sent', detail: 'a b' }])
})

t.test('sends large bodies, not read ahead, among small ones', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  const large = Array.from({ length: 20_000 }, (_, line) => `<p>Line ${line}</p>`).join('\n')
  const bodies = [{ html: large }, { text: large }, {}]
  const ids: string[] = []
  for (const changes of bodies) ids.push(await sendEmail(service, team, changes))
  await startWorker(t, service, { smtp_url })
  await until('all are sent', async () => (await sentCount(service, team.id)) === bodies.length)
  const mails = new Map<string, { html: string | undefined; text: string | undefined }>()
  for (const message of sink.messages()) {
    const { messageId = '', html, text } = await message.parsed()
    mails.set(messageId, { html, text })
  }
  const mailOf = (index: number) => mails.get(`<${ids[index]}@example.com>`)
  t.ok(String(mailOf(0)?.html).includes('<p>Line 19999</p>'))
  t.ok(mailOf(1)?.text?.includes('<p>Line 19999</p>'))
  t.match(mailOf(2)?.html, /Hello/)
})

t.test('an accepted email is sent at once and becomes sent', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  await startWorker(t, service, { smtp_url })
  const id = await sendEmail(service, team, {
    text: 'Hello',
    headers: { 'X-Order': 'A  17' },
    reply_to: 'help@example.net',
  })
  await until('it is sent', async () => (await rowOf(service, team, id)).status === 'sent')
  const [message] = sink.messages()
  t.strictSame(message?.rcpt_to, ['someone@example.org'])
  const mail = await message?.parsed()
  t.match(mail, { subject: 'Hello', html: /<p>Hello<\/p>/, text: /Hello/, messageId: `<${id}@example.com>` })
  t.match(message?.raw.toString(), /^X-Order: A {2}17\r$/m)
  t.match(message?.raw.toString(), /^DKIM-Signature: /m)
  const row = await rowOf(service, team, id)
  t.match(row, { provider_message_id: new RegExp(id), size_kb: 0.01 })
  t.strictSame(await kinds(service, team, id), ['sent someone@example.org'])
})

t.test('a batch of 100 template emails arrives complete', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  const parts = { name: 'A', html: '<p>Hi {{name}}</p>', text: 'Hi {{name}}' }
  const { id: template_id } = await saveTemplate(byCli(service.database), team.id, parts)
  await startWorker(t, service, { smtp_url })
  const emails = Array.from({ length: 100 }, (_, nth) =>
    anEmail({ html: undefined, template_id, variables: { name: `N${nth}` }, to: [`n${nth}@example.org`] }),
  )
  const { body } = await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  t.equal(body.data.filter((item: { id?: string }) => item.id).length, 100)
  await until('all arrived', () => sink.messages().length === 100)
  const texts = await Promise.all(sink.messages().map(async (one) => (await one.parsed()).text?.trim()))
  t.strictSame(new Set(texts), new Set(emails.map((_, index) => `Hi N${index}`)))
  const first = body.data[0].id
  await until('size_kb is filled in', async () => (await rowOf(service, team, first)).size_kb !== null)
})

t.test('a permanent rejection bounces the email without a retry', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t, { onRcpt: () => '550 5.1.1 No such user' })
  await startWorker(t, service, { smtp_url })
  const id = await sendEmail(service, team)
  await until('it bounced', async () => (await rowOf(service, team, id)).status === 'bounced')
  const [event] = await eventsOfEmail(service.database, team.id, id)
  t.match(event, { kind: 'bounced', recipient: 'someone@example.org', detail: /5\.1\.1 No such user/ })
  t.strictSame(await jobStates(service, id), [])
  t.equal(sink.messages().length, 0)
})

t.test('a temporary rejection is retried within 30 s', async (t) => {
  let tries = 0
  const { service, sink, team, smtp_url } = await begin(t, {
    onRcpt: () => (tries++ < 2 ? '451 4.3.0 Later' : undefined),
  })
  await startWorker(t, service, { smtp_url })
  const id = await sendEmail(service, team)
  for (const attempt of [1, 2]) {
    await until('it was put off', async () => (await kinds(service, team, id)).length === attempt)
    t.equal((await rowOf(service, team, id)).status, 'queued')
    await until('its job waits', async () => (await jobStates(service, id))[0] === 'retry')
    const wait = await setJobsDue(service, id)
    t.ok(wait > 0 && wait <= 30 * 2 ** (attempt - 1), `${wait} s`)
  }
  await until('it is sent', async () => (await rowOf(service, team, id)).status === 'sent')
  t.equal(sink.messages().length, 1)
})

t.test('only deferred recipients are retried', async (t) => {
  let tries = 0
  const { service, sink, team, smtp_url } = await begin(t, {
    onRcpt: (recipient) => {
      if (recipient.startsWith('refused')) return '550 5.1.1 No such user'
      return recipient.startsWith('later') && tries++ === 0 ? '451 4.3.0 Later' : undefined
    },
  })
  await startWorker(t, service, { smtp_url })
  const id = await sendEmail(service, team, {
    to: ['now@example.org', 'later@example.org', 'refused@example.org'],
  })
  await until('one is put off', async () => (await rowOf(service, team, id)).pending_recipients !== null)
  t.strictSame((await rowOf(service, team, id)).pending_recipients, ['later@example.org'])
  await until('its job waits', async () => (await jobStates(service, id))[0] === 'retry')
  await setJobsDue(service, id)
  await until('all is done', async () => (await rowOf(service, team, id)).pending_recipients === null)
  t.strictSame(sink.recipients(), [['now@example.org'], ['later@example.org']])
  t.equal((await rowOf(service, team, id)).status, 'bounced')
})

t.test('an email deferred for 24 h of attempts bounces', async (t) => {
  const { service, team, smtp_url } = await begin(t, { onRcpt: () => '451 4.3.0 Later' })
  const id = await sendEmail(service, team)
  await ageByADay(service, id)
  await startWorker(t, service, { smtp_url })
  await until('it is put off', async () => (await jobStates(service, id))[0] === 'retry')
  t.strictSame(await kinds(service, team, id), ['deferred someone@example.org'], 'old, but just tried')
  await ageByADay(service, id)
  await setJobsDue(service, id)
  await until('it bounces', async () => (await rowOf(service, team, id)).status === 'bounced')
  const queues = await queueStatus(service.database)
  const emails = queues.find(({ queue }) => queue === 'deliver-email')
  t.match(emails, { dead: 0 })
})

t.test('emails that a slow server delays don’t delay others', async (t) => {
  const slow = Promise.withResolvers<undefined>()
  const { service, sink, team, smtp_url } = await begin(t, {
    onMessage: async ({ rcpt_to }) => (rcpt_to[0]?.startsWith('slow') ? await slow.promise : undefined),
  })
  await startWorker(t, service, { smtp_url })
  // Runs before the worker's own teardown, which waits for sends in flight.
  t.teardown(() => slow.resolve(undefined))
  for (let index = 0; index < 4; index++) {
    const id = await sendEmail(service, team, { to: ['slow@example.org'] })
    await until('it is being sent', async () => (await jobStates(service, id))[0] === 'active')
  }
  const quick = [await sendEmail(service, team), await sendEmail(service, team)]
  for (const id of quick)
    await until('it is sent', async () => (await rowOf(service, team, id)).status === 'sent')
  t.equal(sink.messages().length, 2)
})

t.test('concurrent provider calls never exceed the slots', async (t) => {
  const [running, most] = [{ count: 0 }, { count: 0 }]
  const { service, sink, team, smtp_url } = await begin(t, {
    onMessage: async () => {
      running.count += 1
      most.count = Math.max(most.count, running.count)
      await new Promise((resolve) => setTimeout(resolve, 20))
      running.count -= 1
      return undefined
    },
  })
  const emails = Array.from({ length: 60 }, () => anEmail())
  await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  await startWorker(t, service, { smtp_url, concurrency: 3 })
  await until('all arrived', () => sink.messages().length === 60)
  t.equal(most.count, 3)
})

t.test('an email that can’t be rendered doesn’t delay its batch', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  const parts = { name: 'A', html: '<p>x</p>', text: '' }
  const { id: template_id } = await saveTemplate(byCli(service.database), team.id, parts)
  const broken = await sendEmail(service, team, { html: undefined, template_id })
  await loseVersions(service, team.id)
  const others = [await sendEmail(service, team), await sendEmail(service, team)]
  await startWorker(t, service, { smtp_url, versions: createVersions() })
  for (const id of others)
    await until('it is sent', async () => (await rowOf(service, team, id)).status === 'sent')
  t.equal(sink.messages().length, 2)
  t.equal((await rowOf(service, team, broken)).status, 'queued')
  const [event] = await eventsOfEmail(service.database, team.id, broken)
  t.match(event, {
    kind: 'deferred',
    detail: /^the email could not be rendered: template version .* is missing$/,
  })
})

t.test('an undecryptable DKIM key delays only its own domain’s emails', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  const other = await makeTeam(
    { ...service, deps: { ...service.deps, secrets: createSecrets('another secret key altogether') } },
    { domain: 'example.net' },
  )
  const stuck = await sendEmail(service, other, { from: 'a@example.net' })
  const fine = await sendEmail(service, team)
  await startWorker(t, service, { smtp_url })
  await until('it is sent', async () => (await rowOf(service, team, fine)).status === 'sent')
  await until('the other waits', async () => (await jobStates(service, stuck))[0] === 'retry')
  t.equal(sink.messages().length, 1)
  const [event] = await eventsOfEmail(service.database, other.id, stuck)
  t.match(event, { kind: 'deferred', detail: /decrypt the DKIM key of example.net/ }, 'it is said why')
})

t.test('waiting for a worker never makes an email fail', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t)
  const ids = await Promise.all(Array.from({ length: 12 }, () => sendEmail(service, team)))
  for (const id of ids) await ageByADay(service, id)
  await startWorker(t, service, { smtp_url, concurrency: 1 })
  await until('all are sent', async () => (await sentCount(service, team.id)) === 12)
  t.equal(sink.messages().length, 12)
})

t.test('SIGTERM stops claims, finishes sends in flight and exits 0', async (t) => {
  const arriving: string[] = []
  const { service, sink, team, smtp_url } = await begin(t, {
    onMessage: async ({ rcpt_to: [to = ''] }) => {
      arriving.push(to)
      // The first two are still in flight when the signal arrives, even on a busy machine.
      if (arriving.length <= 2) await new Promise((resolve) => setTimeout(resolve, 5_000))
      return undefined
    },
  })
  const to = Array.from({ length: 10 }, (_, index) => `n${index}@example.org`)
  const ids = await Promise.all(to.map((recipient) => sendEmail(service, team, { to: [recipient] })))
  const env = { DATABASE_URL: service.url, SMTP_URL: smtp_url, WORKER_CONCURRENCY: '2' }
  const worker = await startProcess(t, 'workers/main.ts', env)
  await until('two are in flight', () => arriving.length === 2)
  worker.kill('SIGTERM')
  t.equal(await worker.exited, 0)
  t.equal(sink.messages().length, 2, 'what waited for its turn was not begun')
  const rows = await Promise.all(ids.map((id) => rowOf(service, team, id)))
  const sent = rows.filter(({ status }) => status === 'sent').flatMap(({ to_emails }) => to_emails)
  t.strictSame(sent.sort(), arriving.sort())
  const states = await Promise.all(ids.map((id) => jobStates(service, id)))
  t.notOk(states.flat().includes('active'))
  await startProcess(t, 'workers/main.ts', env)
  await until('another worker sends the rest', async () => (await sentCount(service, team.id)) === 10)
  t.equal(sink.messages().length, 10, 'each once')
})

t.test('a database outage after an acceptance causes no second copy', async (t) => {
  const { service, sink, team, smtp_url } = await begin(t, {
    onMessage: async () => {
      proxy.cut()
      return undefined
    },
  })
  const proxy = await startDatabaseProxy(t, service.url)
  const id = await sendEmail(service, team)
  const database = await openPool(t, proxy.url)
  const { stop } = await startWorker(t, service, { smtp_url, database })
  await until('it is handed over', () => sink.messages().length === 1)
  t.equal((await rowOf(service, team, id)).status, 'queued')
  proxy.restore()
  await until('it is recorded', async () => (await rowOf(service, team, id)).status === 'sent')
  await stop()
  t.strictSame(await jobStates(service, id), [])
  t.equal(sink.messages().length, 1)
})

t.test('kill -9 during delivery of 500 emails loses none', async (t) => {
  const service = await renewed()
  const team = await makeTeam(service)
  const id_file = join(t.testdir(), 'ids')
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return undefined
  }
  const sink = await startSmtpSink(t, { onMessage: slow }, { id_file })
  const emails = Array.from({ length: 100 }, () => anEmail())
  for (let batch = 0; batch < 5; batch++)
    await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  const env = { DATABASE_URL: service.url, SMTP_URL: sink.url }
  await startProcess(t, 'workers/main.ts', env)
  const kills = 3
  for (let kill = 1; kill <= kills; kill++) {
    const victim = await startProcess(t, 'workers/main.ts', env)
    await until('it is at work', () => sink.messages().length >= kill * 75)
    victim.kill('SIGKILL')
    await victim.exited
  }
  const arrived = async () => (await readFile(id_file, 'utf8')).split('\n').filter((line) => line !== '')
  await until('all arrived', async () => new Set(await arrived()).size === 500, 120)
  await until('all rows say sent', async () => (await sentCount(service, team.id)) === 500)
  const repeated = (await arrived()).length - 500
  t.ok(repeated <= kills * 20, `${repeated} repeats for messages in flight`)
})
