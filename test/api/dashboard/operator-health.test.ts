/** The operator's Health page with its checks, and parked reports. */
import { sql } from 'slonik'
import { databaseChecks, relayCheck } from '../../../api/dashboard/pages/operator/health-checks.ts'
import { endReports, insertReports } from '../../../db/delivery/reports/reports.sql.ts'
import { pausedSenders } from '../../../db/delivery/senders/senders.sql.ts'
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import { idNow } from '../../../db/process/ids.ts'
import { createReaders } from '../../../workers/reports/readers.ts'
import { deliveryStatus } from '../../sandbox/reports.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { post, raw, settled } from '../../support/ingestion.ts'
import { emailStatus } from '../../support/reports.ts'
import { METRICS_TOKEN, makeTeam, sendEmail, startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const { database } = service
const operator = await signedIn(service, { operator: true, email: 'operator@example.com' })

t.test('Health lists checks with problems first', async (t) => {
  const page = await operator.get('/operator/health')
  shows(
    t,
    page,
    /Delivery reports .*No reports yet .*SMTP relay.* Database .*PostgreSQL \d+.* METRICS_TOKEN set/,
  )
  t.notMatch(textOf(page.html), /No reports yet [^–]*\btest\b/)
  t.notMatch(page.html, 'Bounces may not reach us', 'they come by a hook without a return path')
  t.match(page.html, '<main id="main" data-tag=', 'it updates itself')
  t.notMatch(textOf(page.html), /Last bounce report|Refresh/, 'there is no return path')
  shows(
    t,
    page,
    /Processes No worker is running .*No return path RETURN_PATH_DOMAIN is not set\. Bounces go to /,
  )
  await service.database.query(sql.unsafe`
    insert into background_jobs (id, kind, begun_by, begun_at, progressed_at, finished_at, fault)
    values (gen_random_uuid(), 'suppression.judge', 'cli', now(), now(), now(), 'it failed')`)
  const { html: health } = await operator.get('/operator/health')
  t.match(health, /<li class="bad"><span>Suppressions from before the upgrade<wbr> <small>it failed/)
  const state = { version: '18', drift_s: 0, isDrifting: false, fault: null }
  const durable = { fsync: 'on', full_page_writes: 'off', synchronous_commit: 'on' }
  const settings = { ...durable, transaction_read_only: 'off' }
  const checks = databaseChecks({ ...state, off: ['full_page_writes'], settings })
  const lines = checks.map(({ label, tone }) => `${label} ${tone}`)
  const good = ['PostgreSQL 18 good', 'Clocks agree good', 'fsync good', 'synchronous_commit good']
  t.strictSame(lines, ['full_page_writes bad', ...good])
})

t.test('a paused relay with a test attempt is shown as testing', (t) => {
  type Sender = NonNullable<Parameters<typeof relayCheck>[1]>
  const relay = { key: 'smtp:mail.example.com', state: 'probing', reason: '421 later' } as Sender
  t.equal(relayCheck(null, relay).detail, 'testing: 421 later')
  t.equal(relayCheck(null, { ...relay, state: 'paused' }).detail, 'paused: 421 later')
  t.equal(relayCheck(undefined, { ...relay, state: 'paused' }, relay.key).tone, 'bad')
  t.match(relayCheck(undefined, undefined, relay.key), { label: relay.key, tone: 'good' })
  t.end()
})

t.test('a worker checks the email provider, shown on Health', async (t) => {
  const sink = await startSmtpSink(t)
  shows(t, await operator.get('/operator/health'), /not checked yet/)
  const asked = await operator.post('/operator/health/check')
  t.match(asked.location, /^\/operator\/health\?check=/)
  shows(t, await operator.get(asked.location ?? ''), /no worker has checked it yet/)
  const { stop } = await startWorker(t, service, { smtp_url: sink.url })
  const answer = async (words: RegExp, location: string | null) =>
    until(`the page says ${words}`, async () => words.test(textOf((await operator.get(location ?? '')).html)))
  await answer(/passed the check/, asked.location)
  await stop()
  await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:9' })
  const again = await operator.post('/operator/health/check')
  await answer(/smtp:127\.0\.0\.1:9 failed the check\. .*ECONNREFUSED/, again.location)
  t.equal((await operator.get('/operator/health?check=x')).status, 200)
})

t.test('Health shows a sender that causes bounces of three domains', async (t) => {
  const team = await makeTeam(service)
  const settings = { SMTP_URL: 'smtp://relay.test:25' } as const
  const readers = createReaders({ secrets: service.deps.secrets, settings })
  const { stop } = await startWorker(t, service, { readers, pauses: async (job) => job === 'deliver-email' })
  const diagnostic =
    '554 Message rejected: Email address is not verified. The following identities failed the check'
  const bounce = async (recipient: string, domain = recipient) => {
    const id = await sendEmail(service, team, { to: [recipient] })
    const mail_from = returnPath(service.deps.secrets, { team_id: team.id, id }, 'example.com') ?? ''
    const failed = { action: 'failed', status: '5.0.0', diagnostic } as const
    const named = { ...failed, recipient: `x@${domain.split('@').at(-1)}` }
    t.equal(await post(service, deliveryStatus({ mail_from, raw, at: new Date() }, [named])), 200)
    await until('it is read', () => settled(service))
    t.equal(await emailStatus(service, id), 'bounced')
  }
  const isShown = async () =>
    textOf((await operator.get('/operator/health')).html).includes('Misconfigured senders')
  await bounce('a@one.test')
  await bounce('b@two.test')
  await bounce('c@two.test', 'forged.test')
  t.notOk(await isShown())
  await bounce('d@three.test')
  const health = await operator.get('/operator/health')
  shows(t, health, /Misconfigured senders .*smtp:relay\.test:25 .*not verified/)
  const { body } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(body, /\nheliograph_misconfigured_senders 1\n/)
  t.match(body, /\nheliograph_return_path\{check="set"\} 0\n/)
  t.match(body, /\nheliograph_report_age_seconds \d/)
  t.strictSame(await pausedSenders(database), [])
  await stop()
  await database.query(sql.unsafe`delete from reports`)
  await database.query(sql.unsafe`delete from pgboss.job where name = 'deliver-email'`)
})

t.test('Health and the overview count parked reports', async (t) => {
  const pages = ['/operator/health', '/operator']
  for (const path of pages) shows(t, await operator.get(path), / No parked reports /)
  const park = (from: number, to: number) =>
    database.query(sql.unsafe`
      insert into reports (id, provider, event_key, body, received_at, retry_until, state, reason)
      select gen_random_uuid(), 'ses', n, 'a report', now(), now(), 'parked', 'unreadable'
      from generate_series(${from}::int, ${to}::int) n`)
  const shown = async (words: string) => {
    for (const path of pages) {
      const { html } = await operator.get(path)
      const line = html.split('<li class="').find((part) => part.includes(words)) ?? ''
      t.match(line, /^warn"/, `${words}: ${path}`)
    }
  }
  await park(1, 1)
  await shown('>1 parked report<')
  await park(2, 60)
  await shown('>60 parked reports<')
  const { html } = await operator.get('/operator/health')
  t.match(html, 'href="/dashboard/operator/reports">All parked reports<')
  await park(61, 1_001)
  await shown('>1,000+ parked reports<')
  await database.query(sql.unsafe`delete from reports where event_key ~ '^[0-9]+$'`)
})

t.test('parked reports show the recipient’s domain and the status, not the address', async (t) => {
  const sns = JSON.stringify({
    Message: JSON.stringify({
      bounce: { bouncedRecipients: [{ emailAddress: 'ana@books.test', status: '5.7.1' }] },
      mail: { source: 'shop@own.test' },
    }),
  })
  const failed = { statuses: [{ status: 'failed', recipient_id: '15550100', errors: [{ code: 131_026 }] }] }
  const bounce = deliveryStatus({ mail_from: 'bounces@own.test', raw: Buffer.from('') }, [
    { recipient: 'ana@bakery.test', action: 'failed', status: '5.2.2' },
  ])
  const plain = `Subject: Undelivered mail\n\n<ana@plain.test>: host mx.plain.test said: 550 5.1.1 No such user`
  const bodies = [
    { provider: 'smtp', body: bounce, shown: /bakery\.test, 5\.2\.2 SMTP relay / },
    { provider: 'smtp', body: plain, shown: /plain\.test, 5\.1\.1 SMTP relay / },
    { provider: 'ses', body: sns, shown: /books\.test, 5\.7\.1 Amazon SES / },
    { provider: 'whatsapp', body: JSON.stringify(failed), shown: /failed, 131026 WhatsApp / },
    { provider: 'postmark', body: 'Hello ana@books.test', shown: /Postmark 20 bytes / },
    { provider: 'mailgun', body: `${' '.repeat(20_000)}${plain}`, shown: /Mailgun 20\.1 kB / },
  ] as const
  const now = new Date()
  const reports = bodies.map(({ provider, body }) => {
    const id = idNow()
    return { id, provider, event_key: id, body: Buffer.from(body), received_at: now, retry_until: now }
  })
  await insertReports(database, reports)
  await endReports(
    database,
    reports.map(({ id }) => ({ id, state: 'parked', reason: 'unreadable' })),
  )
  const page = await operator.get('/operator/reports')
  for (const { shown } of bodies) shows(t, page, shown)
  shows(
    t,
    await operator.get(`/operator/reports/${reports[0]?.id}`),
    /Report about bakery\.test, 5\.2\.2 parked .* Provider SMTP relay /,
  )
  shows(t, await operator.get(`/operator/reports/${reports[4]?.id}`), /Report from Postmark parked /)
  t.notMatch(page.html, /ana@|15550100|own\.test/)
  await database.query(sql.unsafe`delete from reports where reason = 'unreadable'`)
})
