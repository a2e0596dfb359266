// Test teams: their messages never reach a provider, and a live team's never reach the simulator.
import { sql } from 'slonik'
import { string } from 'yup'
import { DELIVERIES } from '../../../db/channels/channels.sql.ts'
import { releaseAll } from '../../../db/delivery/schedule.ts'
import { requeueLost } from '../../../db/delivery/sweep.ts'
import { row } from '../../../db/postgres/rows.ts'
import type { Payload } from '../../../db/queue/jobs.ts'
import type { EmailProvider, OutgoingEmail } from '../../../workers/providers/provider.ts'
import { SIMULATED_EMAIL } from '../../../workers/providers/test/simulator.ts'
import type { OutgoingWhatsapp, WhatsappProvider } from '../../../workers/providers/whatsapp/provider.ts'
import { adminCli } from '../../support/admin.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { startCloud } from '../../support/cloud.ts'
import { startReceiver } from '../../support/receiver.ts'
import { contactState, eventsOf, loseJobs, setDue, storedReports } from '../../support/reports.ts'
import { ageByADay, jobsOf, sendersOf } from '../../support/rows.ts'
import { anEmail, makeTeam, type Service, sendEmail, type TestTeam } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'
import { giveUpAll, startProcess, startWorker, until } from '../../support/worker.ts'

const PUBLIC_URL = 'https://mail.example.com'

const renewed = await shareService(t, { publicUrl: PUBLIC_URL })

/** Starts a service, a live team and a test team, and a relay and a Cloud API that count connections. */
async function begin(t: Test) {
  const service = await renewed()
  const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
  const [live, test] = [await makeTeam(service), await makeTeam(service, { test: true })]
  let connections = 0
  const sink = await startSmtpSink(t, {
    onConnect: () => {
      connections++
      return undefined
    },
  })
  const cloud = await startCloud(t, {})
  const work = () => startWorker(t, service, { smtp_url: sink.url, whatsapp: cloud.delivery })
  return { service, cli, live, test, sink, cloud, work, connected: () => connections + cloud.connections() }
}

/** Sends a WhatsApp message. @returns its id. */
async function whatsapp(service: Service, team: TestTeam, to: string, changes: object = {}) {
  const template = await makeTemplate(service, team.id)
  const [id = ''] = await sendWhatsapp(service, team, template.id, { to: [to], ...changes })
  return id
}

/** Returns the names of the queues that contain a team's messages. */
const queuesOf = async (service: Service, { id }: TestTeam) =>
  [...new Set((await jobsOf(service, id)).map(({ name }) => name))]
    .filter((name) => name.startsWith('deliver-'))
    .sort()

const unfinishedOf = async ({ database }: Service, { id }: TestTeam): Promise<number> =>
  Number(
    await database.oneFirst(sql.unsafe`
      select (select count(*) from email_states where team_id = ${id} and unfinished)
        + (select count(*) from whatsapp_messages where team_id = ${id} and unfinished)`),
  )

t.test('opens no connection for a test team’s messages', async (t) => {
  const { service, cli, test, live, sink, cloud, work, connected } = await begin(t)
  const { database, deps } = service
  const ids: Record<string, string> = {}
  for (const way of ['single', 'requeued', 'redriven', 'swept', 'astray', 'bulk'])
    ids[way] = await sendEmail(service, test, { to: [`${way}@example.org`] })
  const batch = { emails: [anEmail({ to: ['batch@example.org'] })] }
  t.equal((await service.call('POST', '/v1/emails/batch', { key: test.key, body: batch })).status, 200)
  ids.whatsapp = await whatsapp(service, test, '+15555550101')
  ids.sweptWhatsapp = await whatsapp(service, test, '+15555550102')
  ids.astrayWhatsapp = await whatsapp(service, test, '+15555550101')
  const scheduled_at = new Date(Date.now() + 3_600_000).toISOString()
  ids.timed = await sendEmail(service, test, { to: ['timed@example.org'], scheduled_at })
  ids.timedWhatsapp = await whatsapp(service, test, '+15555550101', { scheduled_at })
  const { id = '' } = test
  const queues = ['deliver-test', 'deliver-test-whatsapp']
  t.same(await queuesOf(service, test), queues)

  await giveUpAll(service, 'deliver-test')
  t.match(await cli.json(['queue', 'redrive', 'deliver-test']), { redriven: 7 })
  await cli.json(['email', 'requeue', id, ids.requeued ?? ''])
  const lost = [ids.swept ?? '', ids.sweptWhatsapp ?? '']
  for (const one of lost) await ageByADay(service, one)
  await loseJobs(service, lost)
  for (const channel of DELIVERIES)
    await requeueLost({ database, queue: deps.queue, now: new Date() }, channel, {
      before: new Date(),
      most: 100,
    })
  for (const table of ['email_states', 'whatsapp_messages'])
    await database.query(sql.unsafe`
      update ${sql.identifier([table])} set due_at = now() where team_id = ${id} and due_at is not null`)
  await releaseAll({ database, queue: deps.queue })
  const released = JSON.stringify(await jobsOf(service, id))
  for (const one of [ids.timed, ids.timedWhatsapp]) t.ok(released.includes(one ?? 'none'), 'released')
  t.same(await queuesOf(service, test), queues, 'the same queues, whatever brought them back')
  await loseJobs(service, [ids.astray ?? '', ids.astrayWhatsapp ?? ''])
  await database.transaction(async (tx) => {
    const [email, message] = [ids.astray ?? '', ids.astrayWhatsapp ?? '']
    await deps.queue.enqueue(tx, 'deliver-email', [{ team_id: id, email_id: email }])
    await deps.queue.enqueue(tx, 'deliver-broadcast', [{ team_id: id, email_id: ids.bulk ?? '' }])
    await deps.queue.enqueue(tx, 'deliver-whatsapp', [{ team_id: id, message_id: message }])
  })
  const news = await broadcastingOf(service, test)
  await news.contacts(['one', 'two'])
  await news.post(await news.create(), 'send')

  await work()
  await until('all but what is astray has gone', async () => (await unfinishedOf(service, test)) <= 2)
  await until('the wrong queues are empty', async () => (await queuesOf(service, test)).length === 0)
  t.equal(await unfinishedOf(service, test), 2, 'what is in the wrong queue is not sent')
  for (const channel of DELIVERIES)
    await requeueLost({ database, queue: deps.queue, now: new Date(Date.now() + 60_000) }, channel, {
      before: new Date(Date.now() + 60_000),
      most: 100,
    })
  await until('the sweep has brought it home', async () => (await unfinishedOf(service, test)) === 0)
  t.equal(connected(), 0, 'nobody has connected')

  await sendEmail(service, live)
  await whatsapp(service, live, '+15555550101')
  await until('a live team’s arrive', () => sink.messages().length === 1 && cloud.messages().length === 1)
  t.ok(connected() > 0, 'the listeners do count')
})

t.test('a live team’s message never reaches the simulator', async (t) => {
  const { service, live, sink, work } = await begin(t)
  const { database, deps } = service
  const [usual, astray] = [await sendEmail(service, live), await sendEmail(service, live)]
  t.same(await queuesOf(service, live), ['deliver-email'])
  await loseJobs(service, [astray])
  await database.transaction((tx) =>
    deps.queue.enqueue(tx, 'deliver-test', [{ team_id: live.id, email_id: astray, test: true }]),
  )
  await work()
  await until('both queues are empty', async () => (await queuesOf(service, live)).length === 0)
  t.equal(sink.messages().length, 1)
  t.equal((await eventsOf(service, usual)).map(({ kind }) => kind).join(), 'sent')
  t.same(await eventsOf(service, astray), [])
  t.same(await storedReports(service), [])
  t.notOk((await sendersOf(service)).some(({ key }) => key.startsWith('test:')))
})

t.test('the simulator responds and reports by local part', async (t) => {
  const { service, cli, test, work, connected } = await begin(t)
  const receiver = await startReceiver(t)
  await cli.json(['webhook', 'add', test.id, '--url', receiver.url, '--types', '*'])
  const ends = {
    delivered: 'delivered',
    'Bounced+tag': 'bounced',
    complained: 'complained',
    opened: 'opened',
    clicked: 'clicked',
    refused: 'bounced',
    anybody: 'delivered',
    deferred: 'delivered',
  }
  const ids = new Map<string, string>()
  for (const who of Object.keys(ends)) {
    const email = `${who}@example.org`
    await service.call('POST', '/v1/contacts', { key: test.key, body: { email } })
    ids.set(who, await sendEmail(service, test, { to: [email] }))
  }
  await work()
  const statusOf = async (who: string) =>
    String(
      await service.database.oneFirst(sql.unsafe`select status from emails where id = ${ids.get(who) ?? ''}`),
    )
  for (const [who, status] of Object.entries(ends)) {
    await until(`${who} is ${status}`, async () => {
      if (who === 'deferred') await setDue(service, 'deliver-test')
      return (await statusOf(who)) === status
    })
  }
  const deferred = (await eventsOf(service, ids.get('deferred') ?? '')).map(({ kind }) => kind)
  t.same(deferred, ['deferred', 'deferred', 'sent', 'delivered'])
  for (const [who, status] of [
    ['Bounced+tag', 'bounced'],
    ['complained', 'complained'],
    ['refused', 'bounced'],
    ['clicked', 'subscribed'],
  ] as const)
    t.match(await contactState(service, test.id, `${who.toLowerCase()}@example.org`), { status }, who)
  t.ok((await storedReports(service)).every(({ provider, state }) => provider === 'test' && state === 'done'))
  const wanted = ['email.bounced', 'email.clicked', 'email.complained', 'email.delivered', 'email.opened']
  await until('webhooks said so', () =>
    wanted.every((type) => receiver.received.some(({ body }) => body.type === type)),
  )
  t.equal(connected(), 0)
})

t.test('simulated WhatsApp results follow the number’s last digits', async (t) => {
  const { service, test, work, connected } = await begin(t)
  const ends = {
    '+15555550101': ['delivered', null],
    '+4915112340102': ['read', null],
    '+15555550103': ['failed', '131026'],
    '+15555550104': ['failed', '131026'],
    '+15555550105': ['delivered', '130429'],
    '+15555550106': ['delivered', '131056'],
    '+15555550107': ['queued', null],
    '+33612345678': ['delivered', null],
  }
  const ids = new Map<string, string>()
  for (const to of Object.keys(ends)) ids.set(to, await whatsapp(service, test, to))
  await work()
  for (const [to, [status, code]] of Object.entries(ends)) {
    const read = () =>
      service.database.one(sql.type(row({ status: string(), code: string().nullable() }))`
        select status, (select max(code) from whatsapp_events where message_id = m.id) as code
        from whatsapp_messages m where id = ${ids.get(to) ?? ''}`)
    await until(`${to} is ${status}`, async () => {
      await setDue(service, 'deliver-test-whatsapp')
      return (await read()).status === status
    })
    t.match(await read(), { code }, to)
  }
  t.equal(connected(), 0)
})

t.test('a test team’s paused broadcast waits until it is resumed', async (t) => {
  const { service, test, work } = await begin(t)
  const news = await broadcastingOf(service, test)
  await news.contacts(['one', 'two'])
  const id = await news.create({ rate_per_minute: 1 })
  await news.post(id, 'send')
  await work()
  const sent = async () =>
    Number(
      await service.database.oneFirst(sql.unsafe`
      select count(*) from email_states where team_id = ${test.id} and not unfinished`),
    )
  await until('one has gone', async () => (await sent()) === 1)
  t.equal((await news.post(id, 'pause')).status, 200)
  await service.database.query(sql.unsafe`update broadcasts set rate_per_minute = null where id = ${id}`)
  t.equal((await news.post(id, 'resume')).status, 200)
  await until('the other goes', async () => (await sent()) === 2)
})

t.test('a worker without provider settings serves test teams', async (t) => {
  const { service, test } = await begin(t)
  const [email, message] = [await sendEmail(service, test), await whatsapp(service, test, '+15555550101')]
  await startProcess(t, 'workers/main.ts', {
    DATABASE_URL: service.url,
    WORKER_QUEUES: 'deliver-test,deliver-test-whatsapp,ingest-report',
  })
  await until('both are delivered', async () =>
    Boolean(
      await service.database.oneFirst(sql.unsafe`
        select exists (select from emails where id = ${email} and status = 'delivered')
          and exists (select from whatsapp_messages where id = ${message} and status = 'delivered')`),
    ),
  )
  t.pass()
})

t.test('mixing test emails and live providers does not compile', async (t) => {
  const toProvider = (provider: EmailProvider, email: OutgoingEmail<true>) =>
    // @ts-expect-error an email of a test team
    provider.send(email)
  const toSimulator = (email: OutgoingEmail) =>
    // @ts-expect-error an email of a live team
    SIMULATED_EMAIL.send(email)
  const toCloud = (provider: WhatsappProvider, message: OutgoingWhatsapp<true>) =>
    // @ts-expect-error a message of a test team
    provider.send(message)
  // @ts-expect-error a job that does not say so
  const asJob: Payload<'deliver-test'> = { team_id: '', email_id: '' }
  t.ok([toProvider, toSimulator, toCloud, asJob])
})

t.test('a request to Meta without credentials does not compile', async (t) => {
  const unnumbered = (provider: WhatsappProvider, message: Omit<OutgoingWhatsapp, 'number'>) =>
    // @ts-expect-error a message without its number
    provider.send(message)
  const unknown = (provider: WhatsappProvider, message: OutgoingWhatsapp) =>
    // @ts-expect-error a message of no number
    provider.send({ ...message, number: null })
  const untrusted = (provider: WhatsappProvider, message: OutgoingWhatsapp) =>
    // @ts-expect-error a number without its token
    provider.send({ ...message, number: { phone_number_id: '1' } })
  // @ts-expect-error an account without a token
  const unlisted = (provider: WhatsappProvider) => provider.listTemplates({ account_id: '1' })
  t.ok([unnumbered, unknown, untrusted, unlisted])
})
