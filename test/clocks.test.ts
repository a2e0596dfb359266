/** Processes whose clocks are hours off while the database's is right: nothing goes by theirs. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { sql } from 'slonik'
import { returnPath } from '../db/messages/emails/return-path.ts'
import { startApi } from './support/api-process.ts'
import { shows, visitor } from './support/dashboard.ts'
import { report, secrets } from './support/mail-reports.ts'
import { isVerified, startReceiver } from './support/receiver.ts'
import { makeKey, SMTP_REPORT_TOKEN, world } from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import t from './support/tap.ts'
import { startProcess, until } from './support/worker.ts'

const HOUR = 3_600_000
const PRELOAD = join(import.meta.dirname, 'chaos/preload/clock.ts')

/** The environment of a process whose clock is hours ahead, or behind. */
const withClock = (hours: number) => ({
  NODE_OPTIONS: `--import ${PRELOAD}`,
  CHAOS_CLOCK_MS: String(hours * HOUR),
})

const { service, cli, team, url, database } = await world(t)
const ALLOWED = { WEBHOOK_ALLOW: '127.0.0.0/8' }

const inHours = (hours: number): Date => new Date(Date.now() + hours * HOUR)

t.test('keys, links and sessions expire by the database’s clock', async (t) => {
  const [good, over] = [
    await makeKey(service, team.id, { expires_at: inHours(1) }),
    await makeKey(service, team.id, { expires_at: inHours(-1) }),
  ]
  for (const hours of [20, -20]) {
    const api = await startApi(t, url, withClock(hours))
    for (const [key, status] of [
      [good, 200],
      [over, 401],
    ] as const)
      t.equal((await api.call('GET', '/v1/contacts', { key })).status, status, `${hours} h`)
    const link = await cli.json(['login', 'ana@example.com', '--team', team.id, '--role', 'viewer'])
    const ana = visitor(api)
    const entered = await ana.post(new URL(link.url).pathname.replace('/dashboard', ''), { csrf: '' })
    t.equal(entered.status, 303, `${hours} h`)
    shows(t, await ana.get(`/teams/${team.id}`), 'Overview')
    // The session that a process with a right clock has made.
    const other = visitor(service)
    for (const [name, value] of ana.cookies) other.cookies.set(name, value)
    shows(t, await other.get(`/teams/${team.id}`), 'Overview')
    api.kill()
    await api.exited
  }
})

t.test('a page warns if its web process’s clock is wrong', async (t) => {
  const api = await startApi(t, url, withClock(2))
  const link = await cli.json(['login', 'olga@example.com', '--operator'])
  const olga = visitor(api)
  await olga.post(new URL(link.url).pathname.replace('/dashboard', ''), { csrf: '' })
  shows(t, await olga.get('/operator/health'), /clock differs from the database’s by 7(199|20\d) seconds/)
})

t.test('an early report waits, though clocks are hours apart', async (t) => {
  const api = await startApi(t, url, { ...withClock(-3), SMTP_REPORT_TOKEN })
  const sink = await startSmtpSink(t)
  const settings = { DATABASE_URL: url, SMTP_URL: sink.url, ...ALLOWED }
  await startProcess(t, 'workers/main.ts', { ...settings, ...withClock(3) })
  const ref = { team_id: team.id, id: randomUUID() }
  const to = returnPath(secrets, ref, 'bounces.example.com') ?? ''
  const status = ['Reporting-MTA: dns; mx.example.org', '', 'Final-Recipient: rfc822; someone@example.org']
  const body = report(to, [...status, 'Action: failed', 'Status: 5.1.1', ''].join('\r\n'))
  const taken = await fetch(`${api.base}/hooks/smtp`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' },
    body,
  })
  t.equal(taken.status, 200)
  await until('a worker has looked at it', async () => {
    const putOff = sql.unsafe`
      select 1 from pgboss.job where name = 'ingest-report' and start_after > created_on + interval '1 s'`
    const ended = sql.unsafe`select 1 from reports where state <> 'pending'`
    return (await database.exists(putOff)) || database.exists(ended)
  })
  const [one] = await cli.json(['report', 'list'])
  t.equal(one.state, 'pending')
  t.ok(Math.abs(Date.parse(one.received_at) - Date.now()) < HOUR / 6, one.received_at)
})

t.test('webhooks have the database’s time, so receivers accept them', async (t) => {
  const receiver = await startReceiver(t)
  const sink = await startSmtpSink(t)
  const settings = { DATABASE_URL: url, SMTP_URL: sink.url, ...ALLOWED }
  const worker = await startProcess(t, 'workers/main.ts', { ...settings, ...withClock(-2) })
  const added = await cli.json(['webhook', 'add', team.id, '--url', receiver.url], { env: ALLOWED })
  await cli.json(['webhook', 'test', team.id, added.id], { env: ALLOWED })
  await until('the webhook has come', () => receiver.received.length > 0)
  const [one] = receiver.received
  t.ok(one && isVerified(one, added.secret), 'the reference library takes it')
  worker.kill()
  await worker.exited
})
