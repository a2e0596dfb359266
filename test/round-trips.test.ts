/**
 * The number of round trips on each path. Each adds 2 ms if the database is 1 ms away. No path has one per item
 * of a batch, a list or a page.
 */
import { returnPath } from '../db/messages/emails/return-path.ts'
import type { JobName } from '../db/queue/jobs.ts'
import { adminCli } from './support/admin.ts'
import { signedIn } from './support/dashboard.ts'
import { testDatabase } from './support/database.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { report as bounce } from './support/mail-reports.ts'
import { openPool } from './support/pool.ts'
import { emailStatus, jobsIn } from './support/reports.ts'
import { sentCount } from './support/rows.ts'
import { anEmail, makeTeam, SMTP_REPORT_TOKEN, sendEmails, startService } from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import t, { type Test } from './support/tap.ts'
import { aMessage, makeTemplate } from './support/whatsapp.ts'
import { startWorker, until, withoutSchedules } from './support/worker.ts'

const { url } = await testDatabase(t)
const proxy = await startDatabaseProxy(t, url)
const service = await startService(t, { url: proxy.url, wake: () => {} })
const { call } = service
await withoutSchedules(service)
const team = await makeTeam(service)
const { key } = team
const person = await signedIn(service, { team: team.id, role: 'owner' })
const cli = adminCli({ DATABASE_URL: proxy.url })

const send = (to = 'someone@example.org') => call('POST', '/v1/emails', { key, body: anEmail({ to: [to] }) })
const template = await makeTemplate(service, team.id)
const sendWhatsapp = () => call('POST', '/v1/whatsapp/messages', { key, body: aMessage(template.id) })
const batch = (count: number) =>
  call('POST', '/v1/emails/batch', { key, body: { emails: Array(count).fill(anEmail()) } })
const { body: email } = await send('returned@example.org')

let reports = 0
function report(through = service, [id, recipient] = [email.id, 'returned@example.org']) {
  reports += 1
  const to = returnPath(service.deps.secrets, { team_id: team.id, id }, 'bounces.example.com')
  const status = `Final-Recipient: rfc822; ${recipient}\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 ${reports}\r\n`
  const raw = new Uint8Array(
    Buffer.from(bounce(to ?? '', `Reporting-MTA: dns; mx.example.org\r\n\r\n${status}`)),
  )
  const headers = { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' }
  return through.call('POST', '/hooks/smtp', { raw, headers })
}

/** Measures a path after its first request, when credentials and settings are cached. */
async function costOf(work: () => Promise<unknown>): Promise<number> {
  await work()
  const costs = [await proxy.during(work), await proxy.during(work), await proxy.during(work)]
  return Math.min(...costs)
}

/** The maximum statements of each path. */
const PATHS: Readonly<Record<string, [number, () => Promise<unknown>]>> = {
  'a send': [4, () => send()],
  'a WhatsApp send': [4, () => sendWhatsapp()],
  'a report': [3, () => report()],
  'the list of emails': [9, () => person.get(`/teams/${team.id}/emails`)],
  'an email’s page': [12, () => person.get(`/teams/${team.id}/emails/${email.id}`)],
  'email show': [16, () => cli.json(['email', 'show', team.id, email.id])],
}

for (const [name, [most, work]] of Object.entries(PATHS))
  t.test(`${name} needs at most ${most} round trips`, async (t) => {
    const cost = await costOf(work)
    t.ok(cost > 0 && cost <= most, `${cost}`)
  })

t.test('100 items need as many statements as one', async (t) => {
  const cost = await costOf(() => batch(1))
  const many = await costOf(() => batch(100))
  // The queue's position is read now and then.
  t.ok(many <= cost + 2, `${many} beside ${cost}`)
})

t.test('30 listed emails need as many statements as two', async (t) => {
  const few = await makeTeam(service)
  const one = await signedIn(service, { team: few.id, role: 'owner' })
  const list = () => one.get(`/teams/${few.id}/emails`)
  await sendEmails(service, few, Array(2).fill({}))
  const cost = await costOf(list)
  await sendEmails(service, few, Array(28).fill({}))
  t.equal(await costOf(list), cost)
})

t.test("an email's page queries its remaining deliveries once", async (t) => {
  const page = () => person.get(`/teams/${team.id}/emails/${email.id}`)
  await page()
  const texts = await proxy.textsDuring(page)
  t.equal(texts.filter((text) => text.includes('handed_over_as')).length, 1)
})

/** Starts a worker and counts its statements, on its queue's connections and on others. */
async function worker(t: Test) {
  const direct = await startService(t, { url })
  const [claims, rest] = [await startDatabaseProxy(t, url), await startDatabaseProxy(t, url)]
  const sink = await startSmtpSink(t)
  const database = await openPool(t, rest.url, { size: 4 })
  await startWorker(t, { ...direct, url: claims.url }, { database, smtp_url: sink.url })
  await until('what waited is sent', async () => (await jobsIn(direct, 'deliver-email')).length === 0)
  /** Returns the minimum of several runs, because some contain polls. Claims of other queues don't count. */
  const costOfWork = async (queue: JobName, work: () => Promise<unknown>) => {
    await work()
    const costs: { claims: number; others: number }[] = []
    for (let time = 0; time < 5; time += 1) {
      let others = 0
      const texts = await claims.textsDuring(async () => {
        others = await rest.during(work)
      })
      costs.push({ claims: texts.filter((text) => text.includes(`'${queue}'`)).length, others })
    }
    const least = (of: 'claims' | 'others') => Math.min(...costs.map((cost) => cost[of]))
    return { claims: least('claims'), others: least('others') }
  }
  return { direct, costOfWork }
}

// A claim that finds less than its limit is followed by no other.
t.test('a worker claims in 1 statement, sends in 10', async (t) => {
  const { direct, costOfWork } = await worker(t)
  const sent = async () => Number(await sentCount(direct, team.id))
  const mails = (count: number) => async () => {
    const before = await sent()
    await sendEmails(direct, team, Array(count).fill({}))
    await until('all are sent', async () => (await sent()) === before + count)
  }
  const one = await costOfWork('deliver-email', mails(1))
  t.equal(one.claims, 1)
  t.ok(one.others > 0 && one.others <= 10, `${one.others} others`)
  const twenty = await costOfWork('deliver-email', mails(20))
  t.equal(twenty.claims, 1)
})

t.test('a worker claims reports in 1 statement, applies in 10', async (t) => {
  const { direct, costOfWork } = await worker(t)
  const recipients = Array.from({ length: 6 }, (_, n) => `returned-${n}@example.org`)
  const changes = recipients.map((to) => ({ to: [to] }))
  const ids = await sendEmails(direct, team, changes)
  await until('all are sent', async () => (await jobsIn(direct, 'deliver-email')).length === 0)
  const returned = ids.map((id, n): [string, string] => [id, recipients[n] ?? ''])
  const read = async () => {
    await report(direct, returned.shift())
    await until('it is read', async () => (await jobsIn(direct, 'ingest-report')).length === 0)
  }
  const { claims, others } = await costOfWork('ingest-report', read)
  t.equal(await emailStatus(direct, ids[0] ?? ''), 'bounced')
  t.equal(claims, 1)
  t.ok(others > 0 && others <= 10, `${others} others`)
})
