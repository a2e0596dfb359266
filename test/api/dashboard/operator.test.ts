/** The operator's pages: health, parked reports, teams, plans, audit. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { object, string } from 'yup'
import { databaseChecks } from '../../../api/dashboard/pages/operator/health-checks.ts'
import { insertAuditEntry } from '../../../db/accounts/audit/audit.sql.ts'
import { loadCatalog } from '../../../db/accounts/plans/catalog.ts'
import { showTeam } from '../../../db/accounts/teams/view.ts'
import { QUEUES } from '../../../db/delivery/queues.ts'
import { endReports, insertReports } from '../../../db/delivery/reports/reports.sql.ts'
import { pausedSenders } from '../../../db/delivery/senders/senders.sql.ts'
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import type { End, JobName } from '../../../db/queue/jobs.ts'
import { RESTORED, storePauses } from '../../../db/queue/pauses.sql.ts'
import { storeSignOfLife } from '../../../db/stats/fleet/fleet.sql.ts'
import { createReaders } from '../../../workers/reports/readers.ts'
import { deliveryStatus } from '../../sandbox/reports.ts'
import { after, formsTo, mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { idleGauges } from '../../support/gauges.ts'
import { hold } from '../../support/held.ts'
import { post, raw, settled } from '../../support/ingestion.ts'
import { emailStatus } from '../../support/reports.ts'
import { lockWaits } from '../../support/rows.ts'
import { pauseSender } from '../../support/senders.ts'
import { anEmail, METRICS_TOKEN, makeTeam, startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const { database } = service
const operator = await signedIn(service, { operator: true, email: 'operator@example.com' })

/** Stores a report. @returns its ID. */
async function receive(body = 'From: nobody'): Promise<string> {
  const id = uuidv7()
  const now = new Date()
  await insertReports(database, [
    { id, provider: 'smtp', event_key: id, body: Buffer.from(body), received_at: now, retry_until: now },
  ])
  return id
}

const parkIt = async (id: string, reason: string): Promise<void> =>
  endReports(database, [{ id, state: 'parked', reason }])

/** Stores a report and parks it. @returns its ID. */
async function park(reason: string): Promise<string> {
  const id = await receive()
  await parkIt(id, reason)
  return id
}

/** Claims jobs of reports and dead-letters them for these reasons. */
async function giveUp(reasons: readonly string[]): Promise<void> {
  const payloads = reasons.map(() => ({ report_id: uuidv7() }))
  await database.transaction((tx) => service.deps.queue.enqueue(tx, 'ingest-report', payloads))
  const consumer = await openConsumer(service.url, { connections: 2, onError: () => {} })
  const claims = consumer.claims('ingest-report')
  const jobs = await claims.fetch(reasons.length)
  const ends = jobs.map((job, at): [typeof job, End] => [job, { end: 'given_up', reason: reasons[at] ?? '' }])
  await database.transaction((tx) => claims.settle(tx, new Map(ends)))
  await consumer.stop(5_000)
}

t.test('Health lists checks with problems first', async (t) => {
  const page = await operator.get('/operator/health')
  shows(
    t,
    page,
    /Delivery reports .*No reports yet .*SMTP relay.* Database .*PostgreSQL \d+.* METRICS_TOKEN set/,
  )
  t.notMatch(textOf(page.html), /No reports yet [^–]*\btest\b/)
  t.notMatch(page.html, 'Bounces may not reach us', 'they come by a hook without a return path')
  await service.database.query(sql.unsafe`
    insert into background_jobs (id, kind, begun_by, begun_at, progressed_at, finished_at, fault)
    values (gen_random_uuid(), 'suppression.judge', 'cli', now(), now(), now(), 'it failed')`)
  t.match(
    (await operator.get('/operator/health')).html,
    /<li class="bad"><span>Suppressions from before the upgrade<wbr> <small>it failed/,
  )
  const state = { version: '18', drift_s: 0, isDrifting: false, fault: null }
  const settings = {
    fsync: 'on',
    full_page_writes: 'off',
    synchronous_commit: 'on',
    transaction_read_only: 'off',
  }
  const checks = databaseChecks({ ...state, off: ['full_page_writes'], settings })
  t.strictSame(
    checks.map(({ label, tone }) => `${label} ${tone}`),
    [
      'full_page_writes bad',
      'PostgreSQL 18 good',
      'Clocks agree good',
      'fsync good',
      'synchronous_commit good',
    ],
  )
})

t.test('the overview shows the state of queues, senders and workers', async (t) => {
  t.equal((await operator.get('/')).location, '/operator')
  shows(t, await operator.get('/operator'), /Checks PostgreSQL \d\S* .* Clocks agree .* All checks/)
  shows(
    t,
    await operator.get('/operator'),
    /Is everything going out\? no: no worker, 1 risk .*No worker is running.*A crash of the database.* Workers 0/,
  )
  const life = { id: uuidv7(), kind: 'worker', host: 'w1', pid: 1, queues: ['deliver-email'] } as const
  const gauges = idleGauges()
  const senders = { 'deliver-email': 'smtp:mail.example.test:587' }
  const completed = { 'deliver-email': 12.4 }
  await storeSignOfLife(database, { ...life, gauges, senders, completed, started_at: new Date() }, [])
  shows(t, await operator.get('/operator/queues'), /Emails 0 0 12\/s 0 1 Pause/)
  const page = await operator.get('/operator')
  shows(
    t,
    page,
    /Is everything going out\? yes, but 1 risk .*A crash of the database can lose accepted messages\. .* are off\./,
  )
  shows(t, page, /Going out now 12\/s .*Workers 1 .*smtp:mail\.example\.test:587 no problems/)
  t.notMatch(textOf(page.html), /No worker is running/)
  const waiting = await makeTeam(service)
  const { status } = await service.call('POST', '/v1/emails', { key: waiting.key, body: anEmail() })
  t.equal(status, 201)
  shows(
    t,
    await operator.get('/operator'),
    /Emails 1 the oldest for .* 0 0\/s .*Waiting to go out 1 the oldest for /,
  )
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() + interval '1 hour' where name = 'deliver-email'`)
  const calm = await operator.get('/operator')
  shows(t, calm, /Emails 1 deferred 0 .*Waiting to go out 1 1 deferred /)
  t.notMatch(calm.html, 'class="tag warn">1<')
  await pauseSender(database, { key: 'smtp:mail.example.test:587', ceiling: 100 }, 600, '421 4.7.0 Later')
  // A slow machine may have lost sight of the worker.
  await storeSignOfLife(database, { ...life, gauges, senders, completed, started_at: new Date() }, [])
  const held = await operator.get('/operator')
  shows(t, held, /going out\? no: 1 sender paused, 1 risk .*Emails 1 deferred, sender paused 0/)
  t.match(held.html, 'class="tag warn">1<', 'the number that something stops')
  shows(
    t,
    await operator.get('/operator/health'),
    /Email smtp:mail\.example\.test:587 paused: 421 4\.7\.0 Later/,
  )
  const queue = await operator.get('/operator/queues/deliver-email')
  shows(t, queue, / Waiting, because smtp:mail\.example\.test:587 is paused\./)
  const other = await operator.get('/operator/queues/deliver-webhook')
  t.notMatch(textOf(other.html), 'Waiting, because')
  await operator.post('/operator/senders/resume?key=smtp%3Amail.example.test%3A587')
  await database.query(
    sql.unsafe`update processes set seen_at = now() - interval '1 minute' where host = 'w1'`,
  )
  shows(
    t,
    await operator.get('/operator/queues'),
    /No worker is running\. .*Emails 1 deferred, no worker 0 0\/s 0 0 Pause/,
  )
  for (const path of ['queues', 'queues/deliver-email', 'health'])
    shows(t, await operator.get(`/operator/${path}`), 'No worker is running')
  t.match((await operator.get('/operator/queues')).html, '<span class="tag bad">0</span>')
  await database.query(sql.unsafe`delete from pgboss.job where name = 'deliver-email'`)
})

t.test("the operator's answer counts everything that stops messages, and nothing else", async (t) => {
  const life = {
    id: uuidv7(),
    kind: 'worker',
    host: 'w2',
    pid: 2,
    queues: [],
    senders: {},
    completed: {},
  } as const
  const answers = async (words: RegExp) => {
    await storeSignOfLife(database, { ...life, gauges: idleGauges(), started_at: new Date() }, [])
    shows(t, await operator.get('/operator'), words)
  }
  await storePauses(database, ['sync-whatsapp-templates'], { paused_by: 'cli' }, new Date())
  await answers(/going out\? yes, but 1 risk .*The queue WhatsApp template sync is paused/)
  await storePauses(
    database,
    ['deliver-whatsapp', 'deliver-whatsapp-parts'],
    { paused_by: 'cli' },
    new Date(),
  )
  await answers(/going out\? no: 1 queue paused, 1 risk /)
  await storePauses(database, ['expand-broadcast'], { paused_by: 'cli' }, new Date())
  await answers(/going out\? no: 2 queues paused, 1 risk /)
  await database.query(sql.unsafe`delete from paused_queues`)
  await storePauses(database, ['deliver-email', 'deliver-webhook'], { reason: RESTORED }, new Date())
  await answers(/going out\? no: a restored copy, 1 risk /)
  await storePauses(database, ['deliver-whatsapp'], { paused_by: 'cli' }, new Date())
  await answers(/going out\? no: 3 problems /)
  await database.query(sql.unsafe`delete from paused_queues`)
  const digest = await database.oneFirst(sql.type(object({ digest: string().defined() }))`
    select digest from schema_migrations where number = 1`)
  const become = (to: string) =>
    database.query(sql.unsafe`update schema_migrations set digest = ${to} where number = 1`)
  await become('other')
  await answers(
    /going out\? no: the database can’t be used, 1 risk .*The database can’t be used\. The .*another version's schema/,
  )
  await become(digest)
  await answers(/going out\? yes, but 1 risk /)
  await database.query(sql.unsafe`delete from processes where id = ${life.id}`)
})

t.test('names queues with waiting jobs and no worker', async (t) => {
  const life = { kind: 'worker', host: 'w3', pid: 3, senders: {}, completed: {} } as const
  const leave = () => database.query(sql.unsafe`delete from processes where host = ${life.host}`)
  const work = async (...queues: JobName[]) => {
    await leave()
    const own = { id: uuidv7(), queues, gauges: idleGauges(), started_at: new Date() }
    await storeSignOfLife(database, { ...life, ...own }, [])
  }
  const unattended =
    /No worker processes the queue Broadcast recipients\. Waiting: 1\. .* expand-broadcast in WORKER_QUEUES/
  await database.transaction(async (tx) => {
    await service.deps.queue.enqueue(tx, 'expand-broadcast', [{ team_id: uuidv7(), broadcast_id: uuidv7() }])
    await service.deps.queue.enqueue(tx, 'check-email', [{ check_id: uuidv7() }])
  })
  await work('deliver-email', 'deliver-webhook')
  const page = await operator.get('/operator')
  shows(t, page, /going out\? no: 1 queue without a worker, 1 risk /)
  shows(t, page, unattended)
  shows(t, page, 'No worker processes the queue Email checks')
  shows(t, page, 'worker host w3, process 3, only Emails and Webhooks')
  shows(t, await operator.get('/operator/queues'), unattended)
  shows(t, await operator.get('/operator/queues/expand-broadcast'), unattended)
  shows(t, await operator.get('/operator/queues/deliver-broadcast'), 'Workers 0 No worker processes it.')
  await storePauses(database, ['expand-broadcast'], { paused_by: 'cli' }, new Date())
  t.notMatch(textOf((await operator.get('/operator')).html), unattended, 'the pause is the reason')
  await database.query(sql.unsafe`delete from paused_queues`)
  await work(...QUEUES.filter((queue) => queue !== 'mail-owners'))
  const all = await operator.get('/operator')
  shows(t, all, /going out\? yes, but 1 risk .*process 3, all queues except Notices to owners/)
  t.notMatch(textOf(all.html), 'No worker processes')
  await database.query(sql.unsafe`delete from pgboss.job where name in ('expand-broadcast', 'check-email')`)
  await leave()
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
  const { id: team, key } = await makeTeam(service)
  const readers = createReaders({
    secrets: service.deps.secrets,
    settings: { SMTP_URL: 'smtp://relay.test:25' } as const,
  })
  const { stop } = await startWorker(t, service, { readers, pauses: async (job) => job === 'deliver-email' })
  const diagnostic =
    '554 Message rejected: Email address is not verified. The following identities failed the check'
  const bounce = async (recipient: string, domain = recipient) => {
    const { body } = await service.call('POST', '/v1/emails', { key, body: anEmail({ to: [recipient] }) })
    const { id } = body
    const mail_from = returnPath(service.deps.secrets, { team_id: team, id }, 'example.com') ?? ''
    const named = {
      recipient: `x@${domain.split('@').at(-1)}`,
      action: 'failed',
      status: '5.0.0',
      diagnostic,
    } as const
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
  shows(
    t,
    await operator.get('/operator/health'),
    /Misconfigured senders .*smtp:relay\.test:25 .*not verified/,
  )
  const { body } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(body, /\nheliograph_misconfigured_senders 1\n/)
  t.match(body, /\nheliograph_return_path\{check="set"\} 0\n/)
  t.match(body, /\nheliograph_report_age_seconds \d/)
  t.strictSame(await pausedSenders(database), [])
  await stop()
  await database.query(sql.unsafe`delete from reports`)
  await database.query(sql.unsafe`delete from pgboss.job where name = 'deliver-email'`)
})

t.test('creates a team, and changes its plan and limits', async (t) => {
  const made = await operator.post('/operator/teams', { name: 'Wile & Sons', plan: 'free' })
  const id = /^\/teams\/([^/]+)$/.exec(made.location ?? '')?.[1] ?? ''
  shows(t, await operator.get('/operator/teams?name=wile'), /Wile & Sons/)
  const page = await operator.get(`/operator/teams/${id}`)
  shows(t, page, /← Teams Wile & Sons Plan Free, /)
  t.match(page.html, '>Pro<')
  t.notMatch((await operator.get('/operator/teams?name=nobody')).html, /Wile/)
  await operator.post(`/operator/teams/${id}/plan`, { plan: 'pro', email_limit: '7' })
  t.match(await showTeam(database, id), { plan: 'pro', limits: { emails: 7 } })
  await operator.post(`/operator/teams/${id}/plan`, { plan: 'pro', email_limit: 'plan' })
  t.match(await showTeam(database, id), { limits: { emails: 50_000 } })
  const refused = await operator.post(`/operator/teams/${id}/plan`, { plan: 'pro', email_limit: 'many' })
  t.equal(refused.status, 400)
  shows(t, refused, /Emails per period must be a number/)
})

t.test("a stale form doesn't undo a limit of another operator", async (t) => {
  const other = await makeTeam(service, { plan: 'free', domain: 'two-operators.test' })
  const page = `/operator/teams/${other.id}`
  const form = formTo((await operator.get(page)).html, `${page}/plan`)
  await operator.press(page, `${page}/plan`, { plan: 'pro', email_limit: '70000' })
  t.equal((await operator.post(`${page}/plan`, { ...form, contact_limit: '300' })).status, 303)
  const shown = async () => database.transaction((tx) => showTeam(tx, other.id))
  t.match(await shown(), { plan: 'pro', limits: { emails: 70_000, contacts: 300 } })
  await operator.press(page, `${page}/plan`, { plan: 'free' })
  t.match(await shown(), { plan: 'free', limits: { emails: 70_000 } }, 'what stands there goes along')
  await operator.press(page, `${page}/plan`, { email_limit: '' })
  t.match(await shown(), { plan: 'free', limits: { emails: 5_000 } })
})

t.test('accepts limits with thousands separators', async (t) => {
  const { id } = await makeTeam(service)
  const plan = `/operator/teams/${id}/plan`
  const { html } = await operator.get(`/operator/teams/${id}`)
  const shown = [...html.matchAll(/name="\w+_limit"[^>]* placeholder="([^"]+)"/g)]
  t.not(shown.length, 0)
  for (const typed of [...shown.map(([, words = '']) => words), '20,000', '20 000', '1\u202f234\u00a0567']) {
    t.match(await operator.post(plan, { plan: 'pro', email_limit: typed }), { status: 303 }, typed)
    t.match(await showTeam(database, id), { limits: { emails: Number(typed.replace(/\D/g, '')) } })
  }
  for (const odd of ['20,00', '2000,000', '1,2,3'])
    t.match(await operator.post(plan, { plan: 'pro', email_limit: odd }), { status: 400 }, odd)
})

t.test("a suspended team's key returns 401 until it is resumed", async (t) => {
  const team = await makeTeam(service)
  const send = async () =>
    (await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })).status
  t.equal(await send(), 201)
  await operator.post(`/operator/teams/${team.id}/suspend`)
  t.equal(await send(), 401)
  shows(t, await operator.get(`/operator/teams/${team.id}`), /its credentials are rejected/)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const overview = await viewer.get(`/teams/${team.id}`)
  shows(t, overview, /This team is suspended\. .* Nothing goes out, because the team is suspended/)
  t.notMatch(overview.html, /Everything is going out/)
  shows(t, await viewer.get(`/teams/${team.id}/contacts`), 'This team is suspended.')
  await operator.post(`/operator/teams/${team.id}/resume`)
  t.equal(await send(), 201)
})

t.test('queued emails wait for a suspended team, scheduled ones for their time', async (t) => {
  const team = await makeTeam(service)
  const pathOf = async (body: object) =>
    `/teams/${team.id}/emails/${(await service.call('POST', '/v1/emails', { key: team.key, body })).body.id}`
  const queued = await pathOf(anEmail())
  const scheduled = await pathOf(anEmail({ scheduled_at: new Date(Date.now() + 86_400_000).toISOString() }))
  await operator.post(`/operator/teams/${team.id}/suspend`)
  // A worker would end the job, because the team is suspended.
  await service.database.query(sql.unsafe`delete from pgboss.job where data ->> 'team_id' = ${team.id}`)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  for (const person of [viewer, operator]) {
    const page = await person.get(queued)
    shows(t, page, /Why it waits Nothing goes out, because the team is suspended/)
    t.notMatch(textOf(page.html), /requeued automatically|a worker/)
    shows(t, await person.get(scheduled), /Why it waits Scheduled for/)
  }
  const again = await operator.press(queued, `${queued}/requeue`)
  shows(t, await after(operator, again), 'Delivery is paused (team A team). The next attempt is made when')
  await operator.post(`/operator/teams/${team.id}/resume`)
  t.notMatch(textOf((await viewer.get(queued)).html), 'suspended')
})

t.test('plans show their teams and limits of first tiers', async (t) => {
  const own = await makeTeam(service, { plan: 'enterprise', contact_limit: 7 })
  const { id } = await makeTeam(service, { plan: 'enterprise' })
  const pro = await makeTeam(service, { plan: 'pro' })
  t.match(await showTeam(database, pro.id), { limits: { emails: 50_000, contacts: 5_000 } })
  const { html } = await operator.get('/operator/plans')
  const rows = (html.match(/<tr[\s>][\s\S]*?<\/tr>/g) ?? []).map(textOf)
  t.ok(
    rows.some((row) => /^Pro paid \d+ .*50,000 first tier 5,000 first tier 10,000 25 10$/.test(row)),
    rows.join('\n'),
  )
  t.ok(
    rows.some((row) =>
      /^Enterprise custom 2 \(2 with own limits\) unlimited unlimited unlimited unlimited 10$/.test(row),
    ),
    rows.join('\n'),
  )
  shows(t, { html }, /Not listed: .*Marketing.*which only ha(s|ve) prices/)
  t.notOk(rows.some((row) => row.startsWith('Marketing')))
  t.match(html, 'href="/dashboard/operator/teams?plan&#x3D;enterprise"')
  const listed = (await operator.get('/operator/teams?plan=enterprise&sort=newest')).html
  for (const one of [own.id, id]) t.match(listed, `/operator/teams/${one}"`)
  t.notMatch(listed, `/operator/teams/${pro.id}"`)
})

t.test('a suspended team has a red label, and sorting has one', async (t) => {
  const team = await makeTeam(service)
  await operator.post(`/operator/teams/${team.id}/suspend`)
  const { html } = await operator.get('/operator/teams?sort=newest')
  t.match(
    html,
    new RegExp(`href="/dashboard/operator/teams/${team.id}"><span class="tag bad">[^<]*, suspended<`),
  )
  shows(t, { html }, /Sort: worst bounces complaints newest/)
  t.match(html, /sort&#x3D;newest" aria-current="true">newest/)
  t.notMatch((await operator.get('/operator/teams')).html, 'aria-current="true">newest')
})

t.test('the catalog is replaced completely or not at all', async (t) => {
  const { html } = await operator.get('/operator/plans')
  const catalog = /<textarea[^>]*>([^<]*)<\/textarea>/.exec(html)?.[1]?.replaceAll('&quot;', '"') ?? ''
  const { plans } = JSON.parse(
    catalog.replaceAll('&#x27;', "'").replaceAll('&amp;', '&').replaceAll('&#x3D;', '='),
  )
  const same = JSON.stringify({ plans })
  shows(t, await operator.ask('/operator/plans', { catalog: same }), 'Nothing changes.')
  const loaded = await operator.post('/operator/plans', { catalog: same })
  t.equal(loaded.status, 303)
  const broken = await operator.post('/operator/plans', { catalog: '{"plans": [' })
  t.equal(broken.status, 400)
  shows(t, broken, /must be valid JSON/)
  const lacking = await operator.post('/operator/plans', { catalog: '{"plans": []}' })
  t.equal(lacking.status, 400)
  shows(t, lacking, /lacks the plan \w+, which teams use \(\d+\)\. Add it, or move those teams first\./)
})

t.test('rejects a catalog based on a stale one', async (t) => {
  const path = '/operator/plans'
  const form = formTo((await operator.get(path)).html, path)
  const [text = ''] = form.catalog ?? []
  const dearer = JSON.parse(text)
  dearer.plans[0].blurb.en = 'Dearer'
  t.equal((await operator.press(path, path, { catalog: JSON.stringify(dearer) })).status, 303)
  const late = await operator.post(path, { ...form, confirmed: 'yes' })
  t.equal(late.status, 409)
  shows(t, late, /Someone else has replaced the catalog since this page was opened\./)
  t.match(formTo((await operator.get(path)).html, path).catalog, [/Dearer/])
  const fresh = formTo((await operator.get(path)).html, path)
  const by = { now: new Date(), actor: 'cli' }
  const commit = await hold(t, database, (tx) => loadCatalog({ ...by, tx }, JSON.parse(text)))
  const pressed = operator.post(path, { ...fresh, confirmed: 'yes' })
  await until('the press waits for the one before', async () => (await lockWaits(service)) > 0)
  await commit()
  t.equal((await pressed).status, 409, 'nor one that is being replaced')
})

t.test('lists parked reports by reason, replays and drops them', async (t) => {
  const others = [await park('unreadable'), await park('unreadable')]
  const one = await park('no message of ours <script>')
  const waiting = await receive()
  const list = await operator.get('/operator/reports')
  shows(t, list, /Unreadable This version .* 2 Show them/)
  t.match(list.html, /Show them[\s\S]*<h2>Reports<\/h2>[\s\S]*Reason contains/, 'the filter is at its list')
  t.match(list.html, /href="[^"]*reports\?reason&#x3D;unreadable">Show them/)
  const lost = await park('no such message')
  const sentence = 'No message matches this report'
  for (const reason of [sentence, 'no such message']) {
    const found = await operator.get(`/operator/reports?${new URLSearchParams({ reason })}`)
    shows(t, found, new RegExp(`⋯ Replay 1 report Drop 1 report .*SMTP relay ${sentence} 12 bytes`))
    t.strictSame(mainActs(found), [], 'a replay changes nothing')
  }
  const lostPage = await operator.get(`/operator/reports/${lost}`)
  shows(t, lostPage, `${sentence}. The message was deleted`)
  t.strictSame(mainActs(lostPage), [])
  shows(t, lostPage, /⋯ Replay report Drop report/)
  t.strictSame(mainActs(await operator.get('/operator/reports')), [], 'it would not help with each of them')
  t.strictSame(mainActs(await operator.get(`/operator/reports/${one}`)), ['Replay report'])
  await operator.post('/operator/reports/drop', { id: lost })
  t.notMatch(list.html, /<script>/)
  t.match(list.html, `href="/dashboard/operator/reports/${one}"`)
  shows(t, await operator.get(`/operator/reports/${one}`), /From: nobody/)
  t.equal((await operator.post('/operator/reports/drop', { reason: 'unreadable' })).status, 400)
  const [counted = {}] = formsTo(
    await operator.get('/operator/reports?reason=unreadable'),
    '/operator/reports/drop',
  )
  const [filtered, drop] = ['/operator/reports?reason=ours', '/operator/reports/drop?reason=ours']
  const single = await operator.get(filtered)
  shows(t, single, /Replay 1 report ⋯ Drop 1 report /)
  t.match(single.html, `action="/dashboard${drop.replace('=', '&#x3D;')}"`)
  const asked = await operator.ask(drop, formTo(single.html, '/operator/reports/drop'))
  t.match(asked.html, `href="/dashboard${filtered.replace('=', '&#x3D;')}">Go back<`, 'to what was filtered')
  const later = await park('unreadable')
  await parkIt(waiting, 'unreadable')
  await operator.post('/operator/reports/drop', counted)
  t.equal((await operator.get(`/operator/reports/${later}`)).status, 200, 'it came after the list was shown')
  t.equal((await operator.get(`/operator/reports/${waiting}`)).status, 200, 'it was parked after that')
  for (const id of others) t.equal((await operator.get(`/operator/reports/${id}`)).status, 404)
  await operator.post('/operator/reports/replay', { id: one })
  shows(t, await operator.get(`/operator/reports/${one}`), /Report from SMTP relay pending/)
})

t.test('audits actions of operators', async (t) => {
  const page = await operator.get('/operator/audit')
  for (const deed of [
    'Created the team',
    'Changed the limits',
    'Suspended the team',
    'Loaded the plans',
    'Dropped delivery reports',
    'Read a delivery report',
  ])
    shows(t, page, new RegExp(`operator@example.com ${deed}`))
  const none = await operator.get(`/operator/audit?team=${uuidv7()}`)
  t.notMatch(textOf(none.html), /Created the team/)
  const made = await operator.post('/operator/teams', { name: 'Audited bakery', plan: 'pro' })
  const id = made.location?.split('/').at(-1) ?? ''
  const template = { name: 'Bread', html: '<p>Hi</p>', text: '' }
  const path = (await operator.post(`/teams/${id}/templates`, template)).location ?? ''
  await operator.post(`${path}/rename`, { name: 'Rolls' })
  const found = await operator.get('/operator/audit?team=audited%20BAK')
  shows(t, found, /Renamed a template Rolls Audited bakery .*Created a template Bread Audited bakery/)
  t.match(found.html, `dashboard${path}"`, 'a name leads to its page')
  t.notMatch(found.html, /team\.suspend/, 'of other teams')
  shows(t, await operator.get('/operator/audit?team=nobody-has-this'), 'No entry matches.')
})

t.test('pauses and resumes a queue', async (t) => {
  await operator.post('/operator/queues/deliver-email/pause')
  const by = new RegExp(`Emails, paused by ${operator.email}, just now `)
  shows(t, await operator.get('/operator/queues'), by)
  shows(
    t,
    await operator.get('/operator/queues/deliver-email'),
    /Emails paused .* Resume queue .* The queue Emails is paused by an operator\. Paused by/,
  )
  shows(t, await operator.get('/operator'), /Emails, paused by/)
  await operator.post('/operator/queues/deliver-email/resume')
  t.notMatch((await operator.get('/operator/queues')).html, /Emails, paused/)
  t.equal((await operator.post('/operator/queues/no-such-queue/pause')).status, 404)
})

t.test('lists failed jobs by reason, and retries one reason', async (t) => {
  const path = '/operator/queues/ingest-report'
  shows(t, await operator.get(path), /No failed jobs/)
  await giveUp(['<b>one</b>', '<b>one</b>', 'other'])
  shows(t, await operator.get('/operator/queues'), /Delivery reports \d+ .*3 see why/)
  const page = await operator.get(path)
  shows(t, page, /<b>one<\/b> 2 0 .* just now …\S+ Retry 2 jobs other 1 .* Retry 1 job/)
  t.equal(
    (await operator.post(`${path}/redrive`, { reason: 'other' })).status,
    400,
    'how many, it does not say',
  )
  await giveUp(['<b>one</b>'])
  const [, ones = {}] = formsTo(page, `${path}/redrive`)
  const moved = await operator.post(`${path}/redrive`, ones)
  t.match(moved, { status: 303 })
  shows(t, await operator.get(path), /2 jobs of Delivery reports will be retried.*<b>one<\/b> 1 .*other 1/)
  const all = await operator.get(path)
  await giveUp(['third'])
  await operator.post(`${path}/redrive`, formsTo(all, `${path}/redrive`)[0])
  shows(t, await operator.get(path), /2 jobs of Delivery reports will be retried.* third 1/)
})

t.test('shows the response of a paused sender, and resumes it', async (t) => {
  const words = '554 5.7.1 <script>Access denied'
  await pauseSender(database, { key: 'smtp:relay.test', ceiling: 100 }, 600, words)
  const page = await operator.get('/operator/senders')
  shows(t, page, /smtp:relay\.test paused/)
  shows(t, page, /Access denied/)
  t.notMatch(page.html, /<script>Access/)
  const life = { id: uuidv7(), kind: 'worker', host: 'w2', pid: 2, queues: ['deliver-email'] } as const
  const figures = { gauges: idleGauges(), senders: {}, completed: {} }
  await storeSignOfLife(database, { ...life, ...figures, started_at: new Date() }, [])
  shows(
    t,
    await operator.get('/operator'),
    /going out\? no: 1 sender paused, 1 risk .*The sender smtp:relay\.test is paused\. 554 5\.7\.1/,
  )
  shows(
    t,
    await operator.get('/operator/queues'),
    /The queue Emails is waiting, because smtp:relay\.test is paused\. .* Senders/,
  )
  const team = await makeTeam(service)
  const { body } = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  const requeue = `/teams/${team.id}/emails/${body.id}`
  await operator.post(`${requeue}/requeue`)
  shows(
    t,
    await operator.get(requeue),
    'Queued to be sent again. Delivery is paused (sender smtp:relay.test)',
  )
  const [counted = {}] = formsTo(
    await operator.get(`/teams/${team.id}/emails/all`),
    `/teams/${team.id}/emails/all/requeue`,
  )
  await operator.post(`/teams/${team.id}/emails/all/requeue`, counted)
  const list = `/teams/${team.id}/emails`
  shows(
    t,
    await operator.get(list),
    /1 email queued to be sent again\. Delivery is paused \(sender smtp:relay\.test\)/,
  )
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const [again = {}] = formsTo(await editor.get(`${list}/all`), `${list}/all/requeue`)
  await editor.post(`${list}/all/requeue`, again)
  shows(t, await editor.get(list), /1 email queued to be sent again\. Delivery is paused\. The next attempt/)
  await operator.post('/operator/senders/resume?key=smtp%3Arelay.test')
  t.notMatch((await operator.get('/operator/queues')).html, /smtp:relay.test is paused/)
  shows(t, await operator.get('/operator/senders'), /resumed by an operator/)
})

t.test("days of a filter are in the reader's time zone", async (t) => {
  const team = await makeTeam(service, { domain: 'zones.test' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = new Date('2026-01-31T12:30:00Z')
  const entry = { team_id: team.id, actor: 'cli', action: 'topic.create', subject: 'Far east', detail: '' }
  await insertAuditEntry(database, { ...entry, id: uuidv7({ msecs: at.getTime() }) }, at)
  const february = async () => (await owner.get(`/teams/${team.id}/audit?from=2026-02-01`)).html
  t.notMatch(await february(), 'Far east')
  t.match(await february(), '(UTC)')
  owner.cookies.set('heliograph-zone', 'Pacific/Auckland')
  t.match(await february(), 'Far east')
  t.notMatch(await february(), '(UTC)')
  t.notMatch((await owner.get(`/teams/${team.id}/audit?to=2026-01-31`)).html, 'Far east')
})

t.test("shows a team's attachment storage and its limit", async (t) => {
  const stored = await makeTeam(service, { domain: 'stored.test' })
  await service.database.query(sql.unsafe`
    update allowances set storage_used = 1500000 where team_id = ${stored.id}`)
  await service.database.query(
    sql.unsafe`update subscriptions set storage_gb = 2 where team_id = ${stored.id}`,
  )
  shows(t, await operator.get(`/operator/teams/${stored.id}`), /Attachments 1\.5 MB of 2 GB/)
})
