/**
 * The planner's cost estimates of all statements of messages, pages, metrics and workers, in three states:
 * empty tables, ten teams in tables that were never analyzed, and the same tables analyzed. PostgreSQL
 * compiles a statement with an estimate of 100,000 (JIT), which is slower than running it. auto_explain
 * reports each plan with the values of a real run, and its notices pass the proxy.
 */
import { randomUUID } from 'node:crypto'
import { sql } from 'slonik'
import { PAGES } from '../api/dashboard/routes.ts'
import { V1_ROUTES } from '../api/v1/routes.ts'
import { returnPath } from '../db/messages/emails/return-path.ts'
import { broadcastingOf, PUBLIC_URL } from './support/broadcasting.ts'
import { signedIn, type Visitor } from './support/dashboard.ts'
import { testDatabase } from './support/database.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { type LivedIn, livedIn } from './support/lived-in.ts'
import { openPool } from './support/pool.ts'
import { storedReports } from './support/reports.ts'
import {
  anEmail,
  HIREFIRE_TOKEN,
  METRICS_TOKEN,
  makeTeam,
  type Service,
  SMTP_REPORT_TOKEN,
  startService,
  type TestTeam,
} from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import t, { type Test } from './support/tap.ts'
import { startWorker, until } from './support/worker.ts'

/** Half of the estimate that makes PostgreSQL compile a statement. */
const MOST = 50_000
const TEAMS = 10
/** Sends of each team at once. */
const EACH = 4
/** Statements that must occur, or the test has missed some. */
const SEEN: Readonly<Record<string, RegExp>> = {
  accept: /insert into accepted_emails/i,
  claim: /for update skip locked/i,
  record: /insert into email_events/i,
  report: /update reports r/i,
  broadcast: /insert into broadcasts/i,
  queues: /pgboss\.queue/i,
}

type Priced = { cost: number; text: string }

/** Returns the plan in a notice of auto_explain, if there is one. */
function pricedIn(notice: string): Priced[] {
  const [, json] = /^duration: .*?plan:\s*(\{.*)$/s.exec(notice) ?? []
  if (json === undefined) return []
  const said = JSON.parse(json)
  return [{ cost: said.Plan['Total Cost'], text: said['Query Text'] }]
}

/** Opens a database whose sessions report each plan, with a service and a worker. */
async function begin(t: Test) {
  const { url } = await testDatabase(t)
  const admin = await openPool(t, url, { size: 1 })
  const name = new URL(url).pathname.slice(1)
  for (const [setting, value] of Object.entries({
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_format': 'json',
    'auto_explain.log_level': 'notice',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_parameter_max_length': '0',
  }))
    await admin.query(sql.unsafe`
      alter database ${sql.identifier([name])} set ${sql.identifier(setting.split('.'))} = ${sql.literalValue(value)}`)
  const proxy = await startDatabaseProxy(t, url)
  return { proxy, admin, service: await startService(t, { url: proxy.url, publicUrl: PUBLIC_URL }) }
}

/** Sends of all teams at once: calls that wait together share a transaction, whatever their team. */
async function sendTogether({ call }: Service, teams: readonly TestTeam[]): Promise<void> {
  const sends = teams.flatMap(({ key }) => Array<string>(EACH).fill(key))
  await Promise.all(sends.map((key) => call('POST', '/v1/emails', { key, body: anEmail() })))
}

/** Makes every request of a team to the API except sends. */
async function readAll({ call }: Service, { key }: TestTeam, pathOf: (path: string) => string) {
  for (const { method, path } of V1_ROUTES)
    if (method === 'GET')
      for (const query of ['', '?limit=2&search=ana']) await call('GET', pathOf(path) + query, { key })
  for (const path of ['/health', '/ready', '/scale', `/hirefire/${HIREFIRE_TOKEN}/info`])
    await call('GET', path)
  await call('GET', '/metrics', { headers: { Authorization: `Bearer ${METRICS_TOKEN}` } })
}

/** Sends of each kind, upserts, a report and a broadcast, which a worker processes. */
async function sendAll(t: Test, service: Service, team: TestTeam): Promise<void> {
  const { call } = service
  const { key } = team
  const name = randomUUID()
  const post = async (path: string, body: unknown) => {
    const { status, body: answer } = await call('POST', path, { key, body })
    t.ok(status < 300, `POST ${path}: ${status} ${JSON.stringify(answer)}`)
    return answer
  }
  for (const _ of Array(8)) await post('/v1/emails', anEmail({ tags: ['news'] }))
  await post('/v1/emails/batch', { emails: [anEmail(), anEmail({ scheduled_at: 'in 1 hour' })] })
  await post('/v1/contacts', { email: `${name}@example.net`, properties: { city: 'Graz' } })
  await post('/v1/contacts/bulk', {
    contacts: [{ email: 'chen@example.net' }, { email: 'eleni@example.net' }],
  })
  const { id } = await post('/v1/emails', anEmail())
  const to = returnPath(service.deps.secrets, { team_id: team.id, id }, 'bounces.example.com')
  const report = `To: ${to}\r\nSubject: Returned\r\n\r\nNo such user\r\n`
  const headers = { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' }
  await call('POST', '/hooks/smtp', { raw: new Uint8Array(Buffer.from(report)), headers })
  const broadcasting = await broadcastingOf(service, team)
  await broadcasting.contacts([`1-${name}`, `2-${name}`])
  const { status } = await broadcasting.post(await broadcasting.create(), 'send')
  t.ok(status < 300, `a broadcast is sent: ${status}`)
}

/** Opens every page, and lists also with a search. */
async function openAll(person: Visitor, pathOf: (path: string) => string): Promise<void> {
  for (const { method, path } of PAGES)
    if (method === 'GET')
      for (const query of /:(?!team)/.test(path) ? [''] : ['', '?q=ana&status=failed'])
        await person.get(pathOf(path) + query)
}

/** Uses every feature, with a worker that also runs scheduled jobs. */
async function walk(t: Test, service: Service, team: TestTeam, things: Partial<LivedIn>): Promise<void> {
  const ids: Readonly<Record<string, string | undefined>> = {
    '/emails/:id': things.bounced,
    '/templates/:id': things.template,
    '/whatsapp/:id': things.message,
    '/messages/:id': things.message,
    '/whatsapp-templates/:id': things.whatsappTemplate,
    '/webhooks/:id': things.webhook,
    '/events/:event_id': things.event,
    '/reports/:report_id': things.report,
    '/background-jobs/:id': things.job,
    '/queues/:queue': 'deliver-email',
    '/domains/:name': 'example.com',
    '/contacts/:email': things.recipient ?? 'ana@example.net',
  }
  const pathOf = (path: string): string =>
    path
      .replace(/\/[\w-]+\/:\w+/g, (whole) => {
        const id = ids[whole]
        return id === undefined ? whole : whole.replace(/:\w+$/, id)
      })
      .replace(/:\w+/g, team.id)
  const sink = await startSmtpSink(t)
  const worker = await startWorker(t, service, { smtp_url: sink.url, scheduled: true })
  await sendTogether(service, teams)
  await sendAll(t, service, team)
  await readAll(service, team, pathOf)
  await openAll(await signedIn(service, { team: team.id, role: 'owner', operator: true }), pathOf)
  await until('all is sent', () => sink.messages().length >= 12 + EACH * teams.length)
  await until('the report is read', async () =>
    (await storedReports(service)).every(({ state }) => state !== 'pending'),
  )
  await worker.stop()
}

const { proxy, admin, service } = await begin(t)

/** Walks, and fails for each statement that is expected to cost more than it may. */
async function expectCheap(t: Test, team: TestTeam, things: Partial<LivedIn> = {}): Promise<void> {
  const notices = await proxy.noticesDuring(() => walk(t, service, team, things))
  const plans = notices.flatMap(pricedIn)
  const dear = plans.filter(({ cost }) => cost > MOST)
  const worst = Map.groupBy(dear, ({ text }) => text.replaceAll(/\s+/g, ' ').slice(0, 300))
  const found = [...worst].map(([text, all]) => [Math.max(...all.map(({ cost }) => cost)), text])
  t.strictSame(found, [])
  for (const [name, pattern] of Object.entries(SEEN))
    t.ok(
      plans.some(({ text }) => pattern.test(text)),
      `${name} is among the statements`,
    )
  const texts = new Set(plans.map(({ text }) => text))
  const [top] = plans.toSorted((a, b) => b.cost - a.cost)
  t.comment(
    `${plans.length} plans of ${texts.size} statements; the dearest ${top?.cost}: ${top?.text.slice(0, 200)}`,
  )
  t.ok(texts.size > 250, `${texts.size} statements`)
}

const team = await makeTeam(service)
const teams = [team]
await t.test('no statement is expected to cost 50,000 with empty tables', (t) => expectCheap(t, team))

let lived: LivedIn
await t.test('nor with ten teams in tables that were never analyzed', async (t) => {
  lived = await livedIn(service)
  for (let more = 2; more < TEAMS; more += 1) {
    const other = await makeTeam(service)
    const { key } = other
    teams.push(other)
    await service.call('POST', '/v1/emails/batch', { key, body: { emails: Array(20).fill(anEmail()) } })
    await service.call('POST', '/v1/contacts', { key, body: { email: 'ana@example.net' } })
  }
  await expectCheap(t, lived.team, lived)
})

await t.test('nor with ten teams in analyzed tables', async (t) => {
  await admin.query(sql.unsafe`analyze`)
  await expectCheap(t, lived.team, lived)
})
