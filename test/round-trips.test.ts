/**
 * How many statements follow one another on each path: with a database that is 1 ms away, each costs 2 ms. None is for
 * each item of a batch, a list or a page.
 */
import { returnPath } from '../db/messages/emails/return-path.ts'
import { adminCli } from './support/admin.ts'
import { signedIn } from './support/dashboard.ts'
import { testDatabase } from './support/database.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { anEmail, makeTeam, SMTP_REPORT_TOKEN, startService } from './support/service.ts'
import t from './support/tap.ts'

const { url } = await testDatabase(t)
const proxy = await startDatabaseProxy(t, url)
const service = await startService(t, { url: proxy.url, wake: () => {} })
const { call } = service
const team = await makeTeam(service)
const { key } = team
const person = await signedIn(service, { team: team.id, role: 'owner' })
const cli = adminCli({ DATABASE_URL: proxy.url })

const send = () => call('POST', '/v1/emails', { key, body: anEmail() })
const batch = (count: number) =>
  call('POST', '/v1/emails/batch', { key, body: { emails: Array(count).fill(anEmail()) } })
const { body: email } = await send()

let reports = 0
function report() {
  reports += 1
  const to = returnPath(service.deps.secrets, { team_id: team.id, id: email.id }, 'bounces.example.com')
  const raw = new Uint8Array(Buffer.from(`To: ${to}\r\nSubject: Returned ${reports}\r\n\r\nNo such user\r\n`))
  const headers = { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' }
  return call('POST', '/hooks/smtp', { raw, headers })
}

/** What a path costs when it is not the first to be asked: credentials and settings are known then. */
async function costOf(work: () => Promise<unknown>): Promise<number> {
  await work()
  const costs = [await proxy.during(work), await proxy.during(work), await proxy.during(work)]
  return Math.min(...costs)
}

/** The most statements of each path. */
const PATHS: Readonly<Record<string, [number, () => Promise<unknown>]>> = {
  'a send': [6, send],
  'a report': [4, report],
  'the list of emails': [9, () => person.get(`/teams/${team.id}/emails`)],
  'an email’s page': [12, () => person.get(`/teams/${team.id}/emails/${email.id}`)],
  'email show': [16, () => cli.json(['email', 'show', team.id, email.id])],
}

for (const [name, [most, work]] of Object.entries(PATHS))
  t.test(`${name} costs at most ${most} statements`, async (t) => {
    const cost = await costOf(work)
    t.ok(cost > 0 && cost <= most, `${cost}`)
  })

t.test('a batch of 100 costs as many statements as one of 1', async (t) => {
  const cost = await costOf(() => batch(1))
  const many = await costOf(() => batch(100))
  // The line is looked at now and then.
  t.ok(many <= cost + 2, `${many} beside ${cost}`)
})

t.test('a list of 30 emails costs as many statements as one of 2', async (t) => {
  const few = await makeTeam(service)
  const one = await signedIn(service, { team: few.id, role: 'owner' })
  const list = () => one.get(`/teams/${few.id}/emails`)
  const body = (count: number) => ({ emails: Array(count).fill(anEmail()) })
  await call('POST', '/v1/emails/batch', { key: few.key, body: body(2) })
  const cost = await costOf(list)
  await call('POST', '/v1/emails/batch', { key: few.key, body: body(28) })
  t.equal(await costOf(list), cost)
})

t.test('an email’s page asks once what is left to deliver', async (t) => {
  const page = () => person.get(`/teams/${team.id}/emails/${email.id}`)
  await page()
  const texts = await proxy.textsDuring(page)
  t.equal(texts.filter((text) => text.includes('handed_over_as')).length, 1)
})
