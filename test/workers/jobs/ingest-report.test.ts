/** Ingestion of reports. Real hook, real queue, real workers. DECISIONS: Delivery reports. */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { replayReport } from '../../../db/delivery/reports/replay.ts'
import { storeReports } from '../../../db/delivery/reports/store.ts'
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { deliveryStatus, type Fate, feedbackReport } from '../../sandbox/reports.ts'
import { startApi } from '../../support/api-process.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import {
  contactState,
  dieWith,
  emailStatus,
  eventsOf,
  holdReport,
  ingestJobs,
  jobsIn,
  refuseEvents,
  setDue,
  setProviderId,
  storeContact,
  storedReports,
  storeEmails,
  storeTeam,
  tries,
  watchRetries,
} from '../../support/reports.ts'
import { type Service, SMTP_REPORT_TOKEN, startService } from '../../support/service.ts'
import { delivery, sesEvent, sesReport } from '../../support/ses-events.ts'
import { startProcess, startWorker, until, withoutSchedules } from '../../support/worker.ts'

const raw = Buffer.from('From: hello@example.com\r\nSubject: Hello\r\n\r\nHello\r\n')
const FAILED: Fate = { action: 'failed', status: '5.1.1', diagnostic: '550 5.1.1 No such user' }
const DELIVERED: Fate = { action: 'delivered', status: '2.0.0' }

/** A service with a team, its contact ana@example.org, and emails to her. */
async function begin(t: Test, emails = 1, options: { clock?: () => Date } = {}) {
  const service = await startService(t, options)
  const team = await storeTeam(service)
  await storeContact(service, team, 'ana@example.org')
  const ids = await storeEmails(
    service,
    team,
    Array.from({ length: emails }, () => ['Ana@example.org']),
  )
  const pathOf = (id: string) => returnPath(service.deps.secrets, { team_id: team, id }, 'example.com') ?? ''
  const about = (id: string, recipient = 'ana@example.org') => ({ mail_from: pathOf(id), recipient, raw })
  const status = (id: string, fate: Fate, recipient = 'ana@example.org') =>
    deliveryStatus(about(id), [{ recipient, ...fate }])
  return { service, team, ids, first: ids[0] ?? '', about, status }
}

const post = async ({ call }: Pick<Service, 'call'>, body: Buffer): Promise<number> =>
  (
    await call('POST', '/hooks/smtp', {
      raw: new Uint8Array(body),
      headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' },
    })
  ).status

const settled = async (service: Service): Promise<boolean> =>
  (await storedReports(service)).every(({ state }) => state !== 'pending')

/** Stores reports as the hook would, all at once. */
const storeAll = async (
  { database, deps }: Service,
  bodies: readonly Buffer[],
  provider: 'smtp' | 'ses' = 'smtp',
  keys: readonly string[] = [],
) =>
  await database.transaction(async (tx) => {
    const received_at = deps.clock()
    await storeReports(
      { tx, queue: deps.queue },
      bodies.map((body, index) => ({ provider, event_key: keys[index] ?? `r${index}`, body, received_at })),
    )
  })

t.test('a bounce, a delivery and a complaint reach row, timeline and contact within a moment', async (t) => {
  const { service, team, first, about, status } = await begin(t)
  await startWorker(t, service)
  t.equal(await post(service, status(first, DELIVERED)), 200)
  await until('it is delivered', async () => (await emailStatus(service, first)) === 'delivered')
  t.same(await contactState(service, team, 'ana@example.org'), { status: 'subscribed', suppression: null })
  t.equal(await post(service, status(first, FAILED)), 200)
  await until('it is bounced', async () => (await emailStatus(service, first)) === 'bounced')
  t.same(await contactState(service, team, 'ana@example.org'), { status: 'bounced', suppression: 'bounced' })
  t.equal(await post(service, feedbackReport(about(first))), 200)
  await until('it is complained of', async () => (await emailStatus(service, first)) === 'complained')
  t.same(await contactState(service, team, 'ana@example.org'), {
    status: 'complained',
    suppression: 'complained',
  })
  const reported = (await eventsOf(service, first)).map(
    ({ kind, recipient, detail }) => `${kind} ${recipient}: ${detail}`,
  )
  t.strictSame(reported.toSorted(), [
    'bounced Ana@example.org: 550 5.1.1 No such user',
    'complained Ana@example.org: abuse: example.org',
    'delivered Ana@example.org: delivered 2.0.0',
  ])
  t.same(new Set((await storedReports(service)).map(({ state }) => state)), new Set(['done']))
})

t.test('only recipients that are on the row count', async (t) => {
  const { service, team, first, status } = await begin(t)
  await storeContact(service, team, 'eve@example.org')
  await startWorker(t, service)
  await post(service, status(first, FAILED, 'eve@example.org'))
  await until('it is read', () => settled(service))
  t.equal(await emailStatus(service, first), 'queued')
  t.match(await contactState(service, team, 'eve@example.org'), { status: 'subscribed' })
  t.match(await storedReports(service), [{ state: 'done', reason: /recipient that the email does not have/ }])
  t.same(await eventsOf(service, first), [])
})

t.test('mail about an email with several recipients moves the email and no contact', async (t) => {
  const { service, team, about } = await begin(t)
  await storeContact(service, team, 'mallory@example.org')
  const to = ['mallory@example.org', 'Ana <ana@example.org>']
  const [id = ''] = await storeEmails(service, team, [to])
  await startWorker(t, service)
  // Mallory has seen the return address of the mail that both got.
  const forged = [
    deliveryStatus(about(id), [{ recipient: 'ana@example.org', ...FAILED }]),
    feedbackReport(about(id)),
  ]
  for (const body of forged) t.equal(await post(service, body), 200)
  await until('they are read', () => settled(service))
  t.equal(await emailStatus(service, id), 'complained')
  t.match((await eventsOf(service, id)).map(({ kind, recipient }) => [kind, recipient]).toSorted(), [
    ['bounced', 'ana@example.org'],
    ['complained', 'ana@example.org'],
  ])
  for (const address of ['ana@example.org', 'mallory@example.org']) {
    t.same(await contactState(service, team, address), { status: 'subscribed', suppression: null })
  }
})

t.test('another team’s contact of the same address is left alone', async (t) => {
  const { service, first, status } = await begin(t)
  const other = await storeTeam(service)
  await storeContact(service, other, 'ana@example.org')
  await startWorker(t, service)
  await post(service, status(first, FAILED))
  await until('it is bounced', async () => (await emailStatus(service, first)) === 'bounced')
  t.match(await contactState(service, other, 'ana@example.org'), { status: 'subscribed', suppression: null })
})

t.test('what cannot be read is parked with the reason, and holds up nobody', async (t) => {
  const { service, ids, status } = await begin(t, 20)
  const good = ids.map((id) => status(id, DELIVERED))
  const bad = [
    Buffer.from('\0\xff', 'latin1'),
    Buffer.from('Subject: Out of office\r\n\r\nI am away\r\n'),
    deliveryStatus({ mail_from: 'b-forged@example.com', raw }, [{ recipient: 'ana@example.org', ...FAILED }]),
    Buffer.from(`To: x\r\nContent-Type: multipart/report\r\n\r\n`),
  ]
  await storeAll(service, [...good.slice(0, 10), ...bad, ...good.slice(10)])
  await startWorker(t, service)
  await until('all are read', () => settled(service))
  const reports = await storedReports(service)
  const parked = reports.filter(({ state }) => state === 'parked')
  t.equal(parked.length, bad.length)
  t.ok(parked.every(({ reason }) => (reason ?? '').length > 10))
  for (const id of ids) t.equal(await emailStatus(service, id), 'delivered')
  t.same(await jobsIn(service, 'ingest-report'), [])
})

t.test('an out-of-office answer to a return address is done with, and nothing happened', async (t) => {
  const { service, first, about } = await begin(t)
  const away = `To: <${about(first).mail_from}>\r\nSubject: Out of office\r\n\r\nI am away\r\n`
  t.equal(await post(service, Buffer.from(away)), 200)
  await startWorker(t, service)
  await until('it is read', () => settled(service))
  t.match(await storedReports(service), [{ state: 'done', reason: null }])
  t.same(await eventsOf(service, first), [])
})

t.test('times that make no sense, or have not come yet, are those of the report', async (t) => {
  const { service, team, first } = await begin(t)
  const times = ['+275760-09-13T00:00:00.000Z', '0000-01-01T00:00:00.000Z', '2999-01-01T00:00:00.000Z']
  const sane = '2026-03-01T12:00:03.000Z'
  const bodies = [...times, sane].map((timestamp) => {
    const mail = { timestamp, tags: { team_id: [team], email_id: [first] } }
    return sesReport(sesEvent('Click', { click: { timestamp, link: timestamp } }, mail)).body
  })
  await storeAll(service, bodies, 'ses')
  await startWorker(t, service)
  await until('they are read', () => settled(service))
  const received = (await storedReports(service)).map(({ received_at }) => received_at)
  t.same(
    new Set((await eventsOf(service, first)).map(({ occurred_at }) => occurred_at)),
    new Set([sane, ...received.slice(0, 3)]),
  )
})

t.test('an event that the database refuses fails its own report only', async (t) => {
  const { service, team, first, ids } = await begin(t, 3)
  const retries = await watchRetries(service)
  await refuseEvents(service, 'poison')
  const bodies = ids.map((id) => {
    const part = delivery(['ana@example.org'], id === first ? { smtpResponse: 'poison' } : {})
    return sesReport(sesEvent('Delivery', part, { tags: { team_id: [team], email_id: [id] } })).body
  })
  await storeAll(service, bodies, 'ses')
  await startWorker(t, service)
  await until(
    'the others are read',
    async () => (await storedReports(service)).filter(({ state }) => state === 'done').length === 2,
  )
  t.equal(await emailStatus(service, ids[1] ?? ''), 'delivered')
  t.equal(await emailStatus(service, ids[2] ?? ''), 'delivered')
  t.match(await storedReports(service), [{ state: 'pending' }, { state: 'done' }, { state: 'done' }])
  t.same(
    await jobsIn(service, 'ingest-report'),
    [{ report_id: (await storedReports(service))[0]?.id }],
    'tried again later',
  )
  t.equal(await retries(), 0, 'the others needed no second try')
})

t.test(
  'of a batch taken one by one, what is early looks again by itself, and what failed is retried',
  async (t) => {
    const { service, team, ids } = await begin(t, 2)
    const about = (id: string, changes = {}) =>
      sesReport(
        sesEvent('Delivery', delivery(['ana@example.org'], changes), {
          tags: { team_id: [team], email_id: [id] },
        }),
      ).body
    const poison = about(ids[0] ?? '', { smtpResponse: 'poison' })
    await refuseEvents(service, 'poison')
    const early = about('0190a1b2-0000-7000-8000-00000000000a')
    await storeAll(service, [poison, early, about(ids[1] ?? '')], 'ses', ['poison', 'early', 'held'])
    const gate = await holdReport(service)
    t.teardown(gate.open)
    const queue = await openConsumer(service.url, { connections: 2, onError: () => {} })
    t.teardown(() => queue.stop(10_000))
    // Two loops could share out what is to be one batch.
    const claims: typeof queue.claims = (job) => {
      const own = queue.claims(job)
      let claimed = false
      const fetch: typeof own.fetch = async (limit) => {
        if (claimed) return []
        claimed = true
        return own.fetch(limit)
      }
      return { ...own, fetch }
    }
    await startWorker(t, service, { queue: { ...queue, claims } })
    await until('the last one is held', gate.isWaiting)
    const states = async () => (await ingestJobs(service)).map(({ state }) => state)
    t.strictSame(await states(), ['active', 'created', 'active'])
    await gate.open()
    await until(
      'the last one is read',
      async () => (await emailStatus(service, ids[1] ?? '')) === 'delivered',
    )
    await until('the batch has ended', async () => !(await states()).includes('active'))
    const [retried, waiting] = await ingestJobs(service)
    t.match(retried, { state: 'retry' })
    t.match(waiting, { state: 'created' })
  },
)

t.test(
  'a report before its row is tried again for an hour, then parked; a replay finds the row',
  async (t) => {
    let now = new Date()
    const { service, team } = await begin(t, 1, { clock: () => now })
    const id = '0190a1b2-0000-7000-8000-00000000000a'
    const body = deliveryStatus(
      { mail_from: returnPath(service.deps.secrets, { team_id: team, id }, 'example.com') ?? '', raw },
      [{ recipient: 'ana@example.org', ...DELIVERED }],
    )
    await post(service, body)
    await startWorker(t, service)
    const waits = async () => (await jobsIn(service, 'ingest-report')).length === 1
    await until('it was tried', async () => (await tries(service)) > 0)
    t.match(await storedReports(service), [{ state: 'pending', reason: null }])
    t.ok(await waits(), 'it still has a job')
    now = new Date(now.getTime() + 3_601_000)
    await setDue(service, 'ingest-report')
    await until('it is parked', () => settled(service))
    const [report] = await storedReports(service)
    t.match(report, { state: 'parked', reason: 'there is no such message' })
    t.same(await jobsIn(service, 'ingest-report'), [])

    await storeEmails(service, team, [['ana@example.org']], { id })
    const { queue } = service.deps
    await service.database.transaction((tx) =>
      replayReport({ tx, now, actor: 'cli' }, queue, report?.id ?? ''),
    )
    await until('the replay finds it', async () => (await emailStatus(service, id)) === 'delivered')
    t.match(await storedReports(service), [{ state: 'done', reason: null }])
  },
)

t.test('a report that knows only the provider’s id waits until that is stored', async (t) => {
  const { service, first } = await begin(t)
  const open = { timestamp: '2026-03-01T13:00:00.000Z' }
  await storeAll(service, [sesReport(sesEvent('Open', { open }, { tags: {}, messageId: 'p-1' })).body], 'ses')
  await startWorker(t, service)
  await until('it was tried', async () => (await tries(service)) > 0)
  t.equal(await emailStatus(service, first), 'queued')
  await setProviderId(service, first, 'p-1')
  await setDue(service, 'ingest-report')
  await until('it is found', async () => (await emailStatus(service, first)) === 'opened')
})

t.test('a thousand reports cost a few statements a hundred', async (t) => {
  const { service, team, ids, status } = await begin(t, 1_000)
  await withoutSchedules(service)
  await storeAll(
    service,
    ids.map((id) => status(id, DELIVERED)),
  )
  const proxy = await startDatabaseProxy(t, service.url)
  const database = await openDatabase(proxy.url, { size: 4 })
  t.teardown(() => database.end())
  const worker = await startWorker(t, service, { database })
  const statements = await proxy.during(async () => {
    await until('all are read', () => settled(service))
    await worker.stop()
  })
  t.equal(new Set(await Promise.all(ids.map((id) => emailStatus(service, id)))).size, 1)
  t.equal(await emailStatus(service, ids[999] ?? ''), 'delivered')
  t.match(await contactState(service, team, 'ana@example.org'), { status: 'subscribed' })
  // For each hundred: read, begin, rows, contacts, events, ladder, settled, jobs, commit; and a few for all.
  t.ok(statements < 120, `${statements} statements`)
  t.comment(`1,000 reports: ${statements} statements`)
})

t.test('kill -9 between the hook’s 200 and ingestion loses nothing', async (t) => {
  const { service, ids, status } = await begin(t, 60)
  const api = await startApi(t, service.url, { SMTP_REPORT_TOKEN })
  const taken = await Promise.all(
    ids.map(async (id) => {
      const response = await fetch(`${api.base}/hooks/smtp`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}` },
        body: new Uint8Array(status(id, FAILED)),
      })
      return response.status
    }),
  )
  api.kill()
  t.same(new Set(taken), new Set([200]))
  t.equal((await storedReports(service)).length, ids.length, 'stored before the answers')
  const env = { DATABASE_URL: service.url, SMTP_URL: 'smtp://127.0.0.1:9' }
  const doomed = await startProcess(t, 'workers/main.ts', env)
  doomed.kill()
  await doomed.exited
  await startProcess(t, 'workers/main.ts', env)
  await until('all are ingested', () => settled(service))
  for (const id of ids) t.equal(await emailStatus(service, id), 'bounced')
})

t.test('reports that workers died with are taken alone, after the others of their batch', async (t) => {
  const { service, ids, status } = await begin(t, 5)
  await storeAll(
    service,
    ids.map((id) => status(id, DELIVERED)),
  )
  await dieWith(service, 2)
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  await startWorker(t, service, { log })
  const sizes = () =>
    lines
      .map((line) => JSON.parse(line))
      .filter(({ msg, job }) => msg === 'batch' && job === 'ingest-report')
      .map(({ jobs }) => jobs)
  await until('all batches are logged', async () => sizes().length === 3)
  t.strictSame(sizes(), [3, 1, 1])
  t.ok(await settled(service))
})
