/**
 * Teams whose email bounces or is reported as spam: the counts, the warning, and the pause of broadcasts and
 * batch items until a resume.
 */
import { sql } from 'slonik'
import { boolean, number, object, string } from 'yup'
import { percent } from '../../db/percent.ts'
import { foldStats } from '../../db/stats/daily/fold.ts'
import { countStats } from '../../workers/jobs/count-stats.ts'
import { adminCli } from '../support/admin.ts'
import { broadcastingOf } from '../support/broadcasting.ts'
import { shows, signedIn } from '../support/dashboard.ts'
import { openPool } from '../support/pool.ts'
import { startReceiver } from '../support/receiver.ts'
import { emailStatus, storeEmails } from '../support/reports.ts'
import { anEmail, METRICS_TOKEN, makeTeam, startService, type TestTeam } from '../support/service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t from '../support/tap.ts'
import { happen } from '../support/webhooks.ts'
import { startWorker, until } from '../support/worker.ts'

const service = await startService(t, { publicUrl: 'https://mail.example.com' })
const { database, deps } = service
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
const sink = await startSmtpSink(t, {
  onRcpt: (to) => (to.startsWith('gone') ? '550 5.1.1 no such user' : undefined),
})
await makeTeam(service, { domain: 'operators.test' })
const notices = {
  from: 'Heliograph <login@operators.test>',
  operator: null,
  site: 'https://mail.example.com',
}
await startWorker(t, service, { smtp_url: sink.url, notices })

const LIMITS = { bounce_percent: 10, complaint_percent: 0.3, least_emails: 10 }
deps.least = LIMITS.least_emails
const judge = (reputation = LIMITS) => countStats({ database, queue: deps.queue, reputation })

const single = async (team: TestTeam, to: string): Promise<string> => {
  const { body } = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ to: [to] }) })
  return body.id
}
const batch = async (team: TestTeam, to: readonly string[]): Promise<string[]> => {
  const emails = to.map((each) => anEmail({ to: [each] }))
  const { body } = await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  return body.data.map(({ id }: { id: string }) => id)
}
const show = (team: TestTeam, id: string) => cli.json(['email', 'show', team.id, id])
const haveGone = (ids: readonly string[]) =>
  until('they have gone', async () => {
    const statuses = await Promise.all(ids.map((id) => emailStatus(service, id)))
    return !statuses.includes('queued')
  })
/** Sends emails, some to addresses that don't exist. */
async function send(team: TestTeam, good: number, gone = 0): Promise<string[]> {
  const to = [
    ...Array.from({ length: good }, (_, at) => `ok${at}@example.org`),
    ...Array.from({ length: gone }, (_, at) => `gone${at}-${Math.random()}@example.org`),
  ]
  const ids = await batch(team, to)
  await haveGone(ids)
  return ids
}
const bulkPaused = async (team: TestTeam) => (await cli.json(['team', 'show', team.id])).bulk_paused

const complain = (team: TestTeam, email_id: string, recipient: string) => {
  const event = { team_id: team.id, email_id, recipient, event_key: `spam:${Math.random()}` }
  return happen(service, { ...event, kind: 'complained', effect: 'complaint' })
}

const countRow = object({ status: string().defined(), count: number().defined() })
const dayOf = async (team: TestTeam) => {
  await foldStats(database)
  const rows = await database.any(sql.type(countRow)`
    select status, sum(count)::integer as count from daily_figures
    where team_id = ${team.id} and channel = 'sending' group by status`)
  return Object.fromEntries(rows.map((row) => [row.status, row.count]))
}

const aTeam = (more: { test?: boolean } = {}) => makeTeam(service, more)

t.test('counts sent, bounced, complained and suppressed emails once each', async (t) => {
  const team = await aTeam()
  const [good = '', , gone = ''] = await send(team, 2, 1)
  await complain(team, good, 'ok0@example.org')
  await complain(team, good, 'ok0@example.org')
  const address = (await show(team, gone)).to_emails[0]
  await haveGone([await single(team, address)])
  t.strictSame(await dayOf(team), { sent: 3, hard_bounced: 1, complained: 1, suppressed: 1 })
})

t.test('a report counts in the hour its email was sent', async (t) => {
  const team = await aTeam()
  const [id = ''] = await send(team, 1)
  await database.query(sql.unsafe`
    update email_events set occurred_at = now() - interval '2 days' where email_id = ${id}`)
  await complain(team, id, 'ok0@example.org')
  await foldStats(database)
  const days = await database.any(sql.type(countRow)`
    select (current_date - day)::text as status, count from daily_figures
    where team_id = ${team.id} and channel = 'sending' and status = 'complained'`)
  t.match(days, [{ count: 1 }])
  t.ok(Number(days[0]?.status) >= 1)
})

t.test('owners and webhooks get a warning once in 24 hours', async (t) => {
  const team = await aTeam()
  const owner = await signedIn(service, { team: team.id, role: 'owner', email: 'warned@owners.example' })
  const receiver = await startReceiver(t)
  await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', 'team.reputation'])
  await send(team, 14, 1)
  await judge()
  await judge()
  await until('it is announced', () => receiver.received.length === 1)
  const data = receiver.received[0]?.body.data
  t.strictSame(data, { bounce_percent: 6.67, complaint_percent: 0, sent: 15, paused: false })
  await until('the owner has mail', () =>
    sink.messages().some(({ rcpt_to }) => rcpt_to.includes('warned@owners.example')),
  )
  t.equal(await bulkPaused(team), null)
  t.notMatch((await owner.get(`/teams/${team.id}`)).html, /resume-bulk/)
  await database.query(sql.unsafe`
    update teams set reputation_warned_at = now() - interval '25 hours' where id = ${team.id}`)
  await judge()
  await until('it is announced again', () => receiver.received.length === 2)
  const announced = await database.anyFirst(sql.type(object({ status: string().defined() }))`
    select status from webhook_messages where team_id = ${team.id}`)
  t.equal(announced.length, 2)
  await send(team, 0, 2)
  await judge()
  await until('a pause is announced in spite of the warning', () => receiver.received.length === 3)
  t.match(receiver.received[2]?.body.data, { paused: true })
})

t.test('a pause stops bulk email, not single emails', async (t) => {
  const team = await aTeam()
  const other = await aTeam()
  const receiver = await startReceiver(t)
  await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', 'team.reputation'])
  const owner = await signedIn(service, { team: team.id, role: 'owner', email: 'paused@owners.example' })
  const casting = await broadcastingOf(service, team)
  // The rate leaves most of them unsent for minutes.
  await casting.contacts(['reader', 'writer', 'editor', 'printer', 'binder', 'seller'])
  const draft = { rate_per_minute: 1 }
  const running = await casting.create(draft)
  t.equal((await casting.post(running, 'send')).status, 202)
  const own = await casting.create(draft)
  t.equal((await casting.post(own, 'send')).status, 202)
  t.equal((await casting.post(own, 'pause')).status, 200)
  await send(team, 9, 3)
  await judge()
  await judge()

  const shown = await bulkPaused(team)
  t.match(shown, { reason: 'team_bounces', since: String })
  t.strictSame(Object.keys(shown).sort(), ['reason', 'since'])
  t.match((await casting.get(running)).body, { state: 'paused', state_reason: 'team_bounces' })
  await until('it is announced', () => receiver.received.length > 0)
  t.equal(receiver.received.length, 1)
  const { sent, bounce_percent, paused } = object({
    sent: number().defined(),
    bounce_percent: number().defined(),
    paused: boolean().defined(),
  }).validateSync(receiver.received[0]?.body.data)
  // How many emails the broadcasts sent before the pause depends on the machine.
  t.ok(sent >= 12)
  t.strictSame({ bounce_percent, paused }, { bounce_percent: Math.round(30_000 / sent) / 100, paused: true })
  const share = percent(3 / sent)
  await until('the owner has mail', () =>
    sink.messages().some(({ rcpt_to }) => rcpt_to.includes('paused@owners.example')),
  )

  const [item = ''] = await batch(team, ['item@example.org'])
  await haveGone([await single(team, 'single@example.org')])
  const rows = { database: await openPool(t, service.url) }
  const [older = ''] = await storeEmails(rows, team.id, [['older@example.org']])
  await database.query(sql.unsafe`update accepted_emails set batch = default where id = ${older}`)
  await cli.json(['email', 'requeue', team.id, older])
  await haveGone([older])
  await haveGone(await batch(other, ['neighbour@example.org']))
  t.match(await show(team, item), {
    status: 'queued',
    waiting: { state: 'paused', reason: new RegExp(`${share}.*limit is 10\\.0 %$`), attempts: 0 },
  })

  const late = await casting.create(draft)
  t.match(await casting.post(late, 'send'), {
    status: 202,
    body: { state: 'paused', state_reason: 'team_bounces' },
  })
  const resumed = await casting.post(late, 'resume')
  t.match(resumed, { status: 409, body: { error: { code: 'invalid_state', message: /team resume-bulk/ } } })
  t.match(await cli.fault(['broadcast', 'resume', team.id, late]), /team resume-bulk/)

  shows(t, await owner.get(`/teams/${team.id}`), new RegExp(`${share} of ${sent} emails`))
  const page = `/teams/${team.id}/resume-bulk`
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  t.equal((await editor.post(page)).status, 403)
  t.equal((await owner.post(page)).status, 303)

  t.equal(await bulkPaused(team), null)
  await haveGone([item])
  for (const id of [running, late]) t.match((await casting.get(id)).body, { state: 'sending' })
  t.match((await casting.get(own)).body, { state: 'paused' }, 'what a person paused stays so')
  await judge()
  t.equal(await bulkPaused(team), null, 'a new count starts')
})

t.test('paused bulk email uses no time for attempts', async (t) => {
  const team = await aTeam()
  const subject = `bulk:${team.id}`
  const pauses = () =>
    database.anyFirst(sql.type(object({ ended: string().defined() }))`
      select (ended_at = 'infinity')::text as ended from pause_history where subject = ${subject}`)
  await send(team, 5, 5)
  await judge()
  t.strictSame(await pauses(), ['true'])
  const shown = await cli.json(['team', 'resume-bulk', team.id])
  t.equal(shown.bulk_paused, null)
  t.strictSame(await pauses(), ['false'])
})

t.test('test teams are exempt, and 0 turns a limit off', async (t) => {
  const [test, off] = [await aTeam({ test: true }), await aTeam()]
  await database.query(sql.unsafe`
    insert into hourly_figures (team_id, channel, hour, status, count)
    select team, 'sending', date_trunc('hour', now()), status, 20
    from unnest(array[${test.id}, ${off.id}]::uuid[]) team, unnest(array['sent', 'hard_bounced']) status`)
  await judge({ ...LIMITS, bounce_percent: 0 })
  t.equal(await bulkPaused(off), null)
  await judge()
  t.equal(await bulkPaused(test), null)
  t.match(await bulkPaused(off), { reason: 'team_bounces' })
})

t.test('the operator sees teams by their shares, and resumes them', async (t) => {
  const [bad, good] = [await aTeam(), await aTeam()]
  await send(good, 10)
  await send(bad, 5, 5)
  await judge()
  const { body: metrics } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(metrics, /^heliograph_team_bounce_percent\{rank="1"\} [1-9]/m)
  t.match(metrics, /^heliograph_team_complaint_percent\{rank="1"\} \d/m)
  t.notMatch(metrics, new RegExp(`percent\\{.*(${bad.id}|rank="11")`), 'without names, ten at most')
  const operator = await signedIn(service, { operator: true })
  const { html } = await operator.get('/operator/teams')
  t.ok(html.indexOf(bad.id) < html.indexOf(good.id), 'the worst first')
  t.match(html, /50\.0\s%/)
  const byAge = (await operator.get('/operator/teams?sort=newest')).html
  t.ok(byAge.indexOf(good.id) < byAge.indexOf(bad.id))
  shows(t, await operator.get(`/operator/teams/${bad.id}`), /50\.0 % of 10 emails/)
  t.equal((await operator.post(`/operator/teams/${bad.id}/resume-bulk`)).status, 303)
  t.equal(await bulkPaused(bad), null)
})
