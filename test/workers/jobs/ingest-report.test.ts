/**
 * The effects of reports on rows, timelines, contacts. Real hook, real queue, real workers. DECISIONS:
 * Delivery reports.
 */
import { deliveryStatus, feedbackReport } from '../../sandbox/reports.ts'
import { DELIVERED, FAILED, post, raw, reportsOf, settled, storeAll } from '../../support/ingestion.ts'
import {
  contactState,
  emailStatus,
  eventsOf,
  jobsIn,
  storeContact,
  storedReports,
  storeEmails,
  storeTeam,
} from '../../support/reports.ts'
import { sesEvent, sesReport } from '../../support/ses-events.ts'
import { shareService } from '../../support/shared-service.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

t.test('bounces, deliveries and complaints reach rows and contacts', async (t) => {
  const { service, team, first, about, status } = await reportsOf(await renewed())
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

t.test('a report concerns the sole recipient, whatever name it has', async (t) => {
  const { service, team, first, about, status } = await reportsOf(await renewed())
  await storeContact(service, team, 'eve@example.org')
  await startWorker(t, service)
  await post(service, status(first, FAILED, 'eve@example.org'))
  await until('it is bounced', async () => (await emailStatus(service, first)) === 'bounced')
  t.match(await contactState(service, team, 'eve@example.org'), { status: 'subscribed' })
  const ana = await contactState(service, team, 'ana@example.org')
  t.match(ana, { status: 'subscribed' }, 'it accepted the email')
  t.match(await eventsOf(service, first), [{ kind: 'bounced', recipient: 'Ana@example.org' }])
  const redacted = feedbackReport(about(first))
    .toString()
    .replace(/\r\n\r\n--/, '\r\n\r\n--')
  const hidden = redacted.replace(/^(Feedback-Type: .*)$/m, '$1\r\nOriginal-Rcpt-To: redacted@example.net')
  await post(service, Buffer.from(hidden))
  await until('it is complained of', async () => (await emailStatus(service, first)) === 'complained')
  t.match(await contactState(service, team, 'ana@example.org'), { status: 'complained' })
})

t.test('reads non-report bounces, or parks and shows them', async (t) => {
  const { service, team, ids, about } = await reportsOf(await renewed(), 2)
  await startWorker(t, service)
  const [first = '', second = ''] = ids
  const from = (id: string) =>
    `Return-Path: <>\r\nTo: <${about(id).mail_from}>\r\nSubject: failure notice\r\n\r\n`
  const qmail =
    'Hi. This is the qmail-send program at mx.example.net.\r\n\r\n<ana@example.org>:\r\nRemote host said: 550 Unknown user\r\n'
  await post(service, Buffer.from(from(first) + qmail))
  await until('it is bounced', async () => (await emailStatus(service, first)) === 'bounced')
  t.match(await contactState(service, team, 'ana@example.org'), { status: 'bounced' })
  await post(service, Buffer.from(`${from(second)}Something went wrong, sorry.\r\n`))
  await until('it is parked', async () =>
    (await storedReports(service)).some(({ state }) => state === 'parked'),
  )
  t.match(await eventsOf(service, second), [{ kind: 'unreadable' }])
})

t.test('reports about an email to several recipients change no contact', async (t) => {
  const { service, team, about } = await reportsOf(await renewed())
  await storeContact(service, team, 'mallory@example.org')
  const to = ['mallory@example.org', 'Ana <ana@example.org>']
  const [id = ''] = await storeEmails(service, team, [to])
  await startWorker(t, service)
  // Mallory has seen the return address of the email that both got.
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
  for (const address of ['ana@example.org', 'mallory@example.org'])
    t.same(await contactState(service, team, address), { status: 'subscribed', suppression: null })
})

t.test('another team’s contact with the same address is unchanged', async (t) => {
  const { service, first, status } = await reportsOf(await renewed())
  const other = await storeTeam(service)
  await storeContact(service, other, 'ana@example.org')
  await startWorker(t, service)
  await post(service, status(first, FAILED))
  await until('it is bounced', async () => (await emailStatus(service, first)) === 'bounced')
  t.match(await contactState(service, other, 'ana@example.org'), { status: 'subscribed', suppression: null })
})

t.test('parks an unreadable report, which delays no other', async (t) => {
  const { service, ids, status } = await reportsOf(await renewed(), 20)
  const good = ids.map((id) => status(id, DELIVERED))
  const bad = [
    Buffer.from('\0\xff', 'latin1'),
    Buffer.from('Subject: Hello\r\n\r\nI am away\r\n'),
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

t.test('an out-of-office reply has no effect', async (t) => {
  const { service, first, about } = await reportsOf(await renewed())
  const away = `To: <${about(first).mail_from}>\r\nSubject: Out of office\r\n\r\nI am away\r\n`
  t.equal(await post(service, Buffer.from(away)), 200)
  await startWorker(t, service)
  await until('it is read', () => settled(service))
  t.match(await storedReports(service), [{ state: 'done', reason: null }])
  t.same(await eventsOf(service, first), [])
})

t.test('implausible and future times become the report’s', async (t) => {
  const { service, team, first } = await reportsOf(await renewed())
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
  const occurred = new Set((await eventsOf(service, first)).map(({ occurred_at }) => occurred_at))
  t.same(occurred, new Set([sane, ...received.slice(0, 3)]))
})
