/** Ingestion during failures: errors, early reports, kills. Real hook, queue and workers. */
import { pino } from 'pino'
import { replayReport } from '../../../db/delivery/reports/replay.ts'
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { deliveryStatus, type RecipientFields } from '../../sandbox/reports.ts'
import { startApi } from '../../support/api-process.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import {
  beginReports,
  DELIVERED,
  FAILED,
  post,
  raw,
  reportsOf,
  settled,
  storeAll,
  storeEach,
} from '../../support/ingestion.ts'
import { openPool } from '../../support/pool.ts'
import {
  contactState,
  dieWith,
  emailStatus,
  holdReport,
  ingestJobs,
  jobsIn,
  refuseEvents,
  setDue,
  setProviderId,
  storedReports,
  storeEmails,
  tries,
  watchRetries,
} from '../../support/reports.ts'
import { SMTP_REPORT_TOKEN } from '../../support/service.ts'
import { delivery, sesEvent, sesReport } from '../../support/ses-events.ts'
import { shareService } from '../../support/shared-service.ts'
import t from '../../support/tap.ts'
import { startProcess, startWorker, until, withoutSchedules } from '../../support/worker.ts'

const renewed = await shareService(t)

t.test('an event rejected by the database fails only its report', async (t) => {
  const { service, team, first, ids } = await beginReports(t, 3)
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
  const left = await jobsIn(service, 'ingest-report')
  t.same(left, [{ report_id: (await storedReports(service))[0]?.id }], 'tried again later')
  t.equal(await retries(), 0, 'the others needed no second try')
})

t.test('reports processed one by one retry separately', async (t) => {
  const { service, team, ids } = await beginReports(t, 2)
  const about = (id: string, changes = {}) =>
    sesReport(
      sesEvent('Delivery', delivery(['ana@example.org'], changes), {
        tags: { team_id: [team], email_id: [id] },
      }),
    ).body
  const poison = about(ids[0] ?? '', { smtpResponse: 'poison' })
  await refuseEvents(service, 'poison')
  const early = about('0190a1b2-0000-7000-8000-00000000000a')
  await storeEach(service, [poison, early, about(ids[1] ?? '')], 'ses', ['poison', 'early', 'held'])
  const gate = await holdReport(service)
  t.teardown(gate.open)
  const queue = await openConsumer(service.url, { connections: 2, onError: () => {} })
  t.teardown(() => queue.stop(10_000))
  // Two loops might split one batch.
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
  await until('the last one is read', async () => (await emailStatus(service, ids[1] ?? '')) === 'delivered')
  await until('the batch has ended', async () => !(await states()).includes('active'))
  const [retried, waiting] = await ingestJobs(service)
  t.match(retried, { state: 'retry' })
  t.match(waiting, { state: 'created' })
})

t.test('a report without its row is retried, then parked', async (t) => {
  let now = new Date()
  const { service, team } = await beginReports(t, 1, { clock: () => now })
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
  t.match(report, { state: 'parked', reason: 'no such message' })
  t.same(await jobsIn(service, 'ingest-report'), [])

  await storeEmails(service, team, [['ana@example.org']], { id })
  const { queue } = service.deps
  await service.database.transaction((tx) => replayReport({ tx, now, actor: 'cli' }, queue, report?.id ?? ''))
  await until('the replay finds it', async () => (await emailStatus(service, id)) === 'delivered')
  t.match(await storedReports(service), [{ state: 'done', reason: null }])
})

t.test('a report waits until the provider’s id is stored', async (t) => {
  const { service, first } = await reportsOf(await renewed())
  const open = { timestamp: '2026-03-01T13:00:00.000Z' }
  await storeAll(service, [sesReport(sesEvent('Open', { open }, { tags: {}, messageId: 'p-1' })).body], 'ses')
  await startWorker(t, service)
  await until('it was tried', async () => (await tries(service)) > 0)
  t.equal(await emailStatus(service, first), 'queued')
  await setProviderId(service, first, 'p-1')
  await setDue(service, 'ingest-report')
  await until('it is found', async () => (await emailStatus(service, first)) === 'opened')
})

t.test('a thousand reports need a few statements per hundred', async (t) => {
  const { service, team, ids, status } = await beginReports(t, 1_000)
  await withoutSchedules(service)
  await storeAll(
    service,
    ids.map((id) => status(id, DELIVERED)),
  )
  const proxy = await startDatabaseProxy(t, service.url)
  const database = await openPool(t, proxy.url, { size: 4 })
  const worker = await startWorker(t, service, { database })
  const ran = await proxy.preparedDuring(async () => {
    await until('all are read', () => settled(service))
    await worker.stop()
  })
  t.equal(new Set(await Promise.all(ids.map((id) => emailStatus(service, id)))).size, 1)
  t.equal(await emailStatus(service, ids[999] ?? ''), 'delivered')
  t.match(await contactState(service, team, 'ana@example.org'), { status: 'subscribed' })
  // The worker's clock statements, which run more often on a slow machine.
  const clocks = ['senders_by_keys', 'senders_in_trouble', 'started_passes', 'what_is_due']
  // A connection's first transaction sends these by themselves (db/postgres/joined.ts).
  const borders = ['begin', 'commit']
  const others = [...clocks, ...borders]
  const { '': unnamed = 0, ...own } = Object.fromEntries([...ran].filter(([name]) => !others.includes(name)))
  const each = ['pending_reports', 'lock_emails', 'lock_contacts', 'insert_events_email', 'change_emails']
  t.strictSame(
    Object.keys(own).sort(),
    [...each, 'end_reports', 'suppressed_among'].sort(),
    'rows, contacts, events, ladder, ends',
  )
  for (const [name, times] of Object.entries(own)) t.ok(times <= 15, `${name} ran ${times} times`)
  // Jobs are settled without a name, like the clocks' other statements.
  t.ok(unnamed < 100, `${unnamed} others`)
})

t.test('kill -9 between the hook’s 200 and ingestion loses nothing', async (t) => {
  const { service, ids, status } = await reportsOf(await renewed(), 60)
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

/** Returns the number of jobs in each logged batch of reports. */
const batchSizes = (lines: readonly string[]): number[] =>
  lines
    .map((line) => JSON.parse(line))
    .filter(({ msg, job }) => msg === 'batch' && job === 'ingest-report')
    .map(({ jobs }) => jobs)

t.test('reports whose workers died are processed singly, after the rest', async (t) => {
  const { service, ids, status } = await reportsOf(await renewed(), 5)
  await storeEach(
    service,
    ids.map((id) => status(id, DELIVERED)),
  )
  await dieWith(service, 2)
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  await startWorker(t, service, { log, connections: 1 })
  await until('all batches are logged', async () => batchSizes(lines).length === 3)
  t.strictSame(batchSizes(lines), [3, 1, 1])
  t.ok(await settled(service))
})

t.test('reports of a job whose worker died get their own jobs', async (t) => {
  const { service, ids, status } = await reportsOf(await renewed(), 3)
  await storeAll(
    service,
    ids.map((id) => status(id, DELIVERED)),
  )
  t.equal((await jobsIn(service, 'ingest-report')).length, 1)
  await dieWith(service, 1)
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  await startWorker(t, service, { log, connections: 1 })
  await until('all batches are logged', async () => batchSizes(lines).length >= 2)
  t.equal(batchSizes(lines)[0], 1)
  await until('all are read', () => settled(service))
  t.same(await jobsIn(service, 'ingest-report'), [])
  for (const id of ids) t.equal(await emailStatus(service, id), 'delivered')
})

t.test('waiting reports leave a shared job', async (t) => {
  const { service, team, ids, status } = await reportsOf(await renewed(), 2)
  const nowhere = { team_id: team, id: '0190a1b2-0000-7000-8000-00000000000a' }
  const mail_from = returnPath(service.deps.secrets, nowhere, 'example.com') ?? ''
  const early = (fields: RecipientFields) =>
    deliveryStatus({ mail_from, raw }, [{ recipient: 'ana@example.org', ...fields }])
  await storeAll(service, [early(DELIVERED), ...ids.map((id) => status(id, FAILED)), early(FAILED)])
  const [first, , , last] = await storedReports(service)
  await startWorker(t, service)
  await until('both were tried', async () => (await tries(service)) === 2)
  t.strictSame(await jobsIn(service, 'ingest-report'), [{ report_id: first?.id }, { report_id: last?.id }])
  for (const id of ids) t.equal(await emailStatus(service, id), 'bounced')
})
