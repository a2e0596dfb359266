/**
 * Broadcasts of domains with a ramp-up: today's limit, emails that wait until tomorrow, and exemptions.
 */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { idRow, row } from '../../db/postgres/rows.ts'
import { beside } from '../../workers/adapters.ts'
import type { SmtpScript } from '../sandbox/smtp.ts'
import { adminCli } from '../support/admin.ts'
import { recordBounce } from '../support/bounce.ts'
import { broadcastingOf } from '../support/broadcasting.ts'
import { shiftClock } from '../support/clock.ts'
import { shows, signedIn } from '../support/dashboard.ts'
import { anEmail, makeTeam, type TeamLimits } from '../support/service.ts'
import { shareService } from '../support/shared-service.ts'
import { provide } from '../support/smtp-provider.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t, { type Test } from '../support/tap.ts'
import { startWorker, until } from '../support/worker.ts'

const renewed = await shareService(t, { publicUrl: 'https://mail.example.com' })

async function begin(
  t: Test,
  {
    ramp = null,
    most,
    script,
    ...team
  }: {
    ramp?: { limit: number; factor: number } | null
    /** The maximum rate of broadcasts, in emails per second. */
    most?: number
    script?: SmtpScript
    test?: boolean
  } & TeamLimits = {},
) {
  const service = await renewed()
  const cli = adminCli({ DATABASE_URL: service.url })
  const sink = await startSmtpSink(t, script)
  const email = provide(t, { url: sink.url, max_connections: 20 })
  const own = await makeTeam(service, team)
  const casting = await broadcastingOf(service, own)
  await startWorker(t, service, { email, bulk: beside(email, most), ramp })
  const received = () => sink.messages().length
  const startWith = async (names: readonly string[], fields?: Record<string, unknown>) => {
    await casting.contacts(names)
    const id = await casting.create(fields)
    t.equal((await casting.post(id, 'send')).status, 202)
    return id
  }
  const start = (...names: string[]) => startWith(names)
  const waiting = () =>
    service.database.anyFirst(sql.type(idRow)`
      select id from email_states where unfinished and broadcast_id is not null order by id`)
  const state = async (id: string) => (await casting.get(id)).body.state
  const ramped = async () => (await cli.json(['domain', 'list', own.id]))[0].ramp
  return { service, cli, sink, team: own, casting, received, start, startWith, waiting, state, ramped }
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `contact${index}`)

t.test("broadcast emails over today’s limit wait, single ones don't", async (t) => {
  const { service, cli, team, received, start, waiting, state } = await begin(t)
  const set = await cli.json(['domain', 'ramp', team.id, 'example.com', '2'])
  t.match(set, { name: 'example.com', ramp: { limit: 2, used: 0 } })
  const id = await start('ann', 'ben', 'cleo', 'dan')
  await until('two have gone', () => received() === 2)
  await until('the others were looked at', async () => {
    const shown = await Promise.all((await waiting()).map((one) => cli.json(['email', 'show', team.id, one])))
    return shown.length === 2 && shown.every(({ waiting: why }) => why.state === 'deferred')
  })
  const [one = ''] = await waiting()
  const { waiting: why } = await cli.json(['email', 'show', team.id, one])
  t.match(why, { state: 'deferred', reason: /limit of 2 .*example\.com/, attempts: 0 })
  const midnight = Math.ceil(Date.now() / 86_400_000) * 86_400_000
  t.ok(Math.abs(Date.parse(why.next_attempt_at) - midnight) < 60_000, why.next_attempt_at)
  t.equal(await state(id), 'sending')
  const sent = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  t.equal(sent.status, 201)
  await until('the single one has gone', () => received() === 3)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const page = await owner.get(`/teams/${team.id}/broadcasts/${id}`)
  shows(t, page, /Ramp-up of example\.com: 2 of 2 .*sent today/)
  shows(t, await owner.get(`/teams/${team.id}/domains/example.com`), /2 of 2 broadcast emails sent today/)
  await service.database.query(sql.unsafe`
    update email_states set created_at = created_at - interval '1 hour' where team_id = ${team.id}`)
  t.notMatch((await owner.get(`/teams/${team.id}`)).html, /waiting for longer/)
  t.equal((await owner.post(`/teams/${team.id}/domains/example.com/ramp`, { limit: '3' })).status, 303)
  await until('one more has gone', () => received() === 4)
  t.match(await cli.json(['domain', 'ramp', team.id, 'example.com', 'off']), { ramp: null })
  await until('it is done', async () => (await state(id)) === 'sent')
  t.equal(received(), 5)
})

t.test('the limit doubles daily, unless the day is bad', async (t) => {
  const { service, cli, team, received, start, waiting } = await begin(t)
  await cli.json(['domain', 'ramp', team.id, 'example.com', '2'])
  await start('ann', 'ben', 'cleo', 'dan', 'eve', 'finn', 'gus', 'hal')
  const nextDay = async (days: number) => {
    await shiftClock(service.database, days * 86_400)
    await service.database.query(sql.unsafe`
      update pgboss.job set start_after = now() where name = 'deliver-broadcast' and state = 'created'`)
  }
  await until('two have gone', () => received() === 2)
  await until('six wait', async () => (await waiting()).length === 6)
  await shiftClock(service.database, 86_400)
  const [{ ramp: next }] = await cli.json(['domain', 'list', team.id])
  t.strictSame(next, { limit: 4, used: 0, factor: 2 }, 'it is shown before an email is sent')
  await nextDay(1)
  await until('four more have gone', () => received() === 6)
  const [gone] = await service.database.any(sql.type(row({ id: string(), to: string() }))`
    select s.id, e.to_emails[1] as to from email_states s join accepted_emails e using (team_id, id)
    where s.status = 'sent' and s.broadcast_id is not null order by s.id desc limit 1`)
  await service.database.query(sql.unsafe`
    update email_events set occurred_at = occurred_at + interval '1 day' where email_id = ${gone?.id ?? ''}`)
  await recordBounce(service, { team_id: team.id, email_id: gone?.id ?? '' }, { recipient: gone?.to ?? '' })
  await nextDay(2)
  await until('the last two have gone', () => received() === 8)
  const { ramp } = await cli.json(['domain', 'ramp', team.id, 'example.com', '9'])
  t.match(ramp, { used: 2 })
  const limits = await service.database.anyFirst(sql.type(row({ kind: string() }))`
    select kind from domain_ramp_reports where name = 'example.com'`)
  t.strictSame(limits, ['bounced'])
})

t.test('an email counts only once it may be sent at the rate of its broadcast', async (t) => {
  const { cli, team, received, startWith, waiting, ramped } = await begin(t)
  await cli.json(['domain', 'ramp', team.id, 'example.com', '7'])
  // Five seconds' worth may go at once.
  await startWith(names(10), { rate_per_minute: 60 })
  await until("all of the day's emails have gone", () => received() === 7)
  t.match(await ramped(), { limit: 7, used: 7 })
  await until('the others wait', async () => (await waiting()).length === 3)
})

t.test("emails that their sender can't send yet don't count", async (t) => {
  const { cli, team, received, startWith, waiting, ramped } = await begin(t, { most: 2 })
  await cli.json(['domain', 'ramp', team.id, 'example.com', '15'])
  await startWith(names(20))
  await until("all of the day's emails have gone", () => received() === 15)
  t.match(await ramped(), { limit: 15, used: 15 })
  await until('the others wait', async () => (await waiting()).length === 5)
})

t.test("attempts that don't reach the relay don't count", async (t) => {
  let connections = 0
  const onConnect = () => (++connections <= 4 ? '554 5.3.2 No service' : undefined)
  const { cli, team, received, start, ramped } = await begin(t, { script: { onConnect } })
  await cli.json(['domain', 'ramp', team.id, 'example.com', '2'])
  await start('ann', 'ben')
  await until('both have gone', () => received() === 2)
  t.match(await ramped(), { limit: 2, used: 2 })
})

t.test('cancelling deletes an email that is being deferred to the next day', async (t) => {
  const { service, cli, team, start, waiting, received } = await begin(t)
  await cli.json(['domain', 'ramp', team.id, 'example.com', '1'])
  await cli.json(['queue', 'pause', 'deliver-broadcast'])
  const id = await start('ann', 'ben', 'cleo')
  await until('three wait', async () => (await waiting()).length === 3)
  await service.database.transaction(async (tx) => {
    await tx.query(sql.unsafe`select from broadcasts where id = ${id} for update`)
    await cli.json(['queue', 'resume', 'deliver-broadcast'])
    await until('one has gone', () => received() === 1)
    await until('the others are being put back', () =>
      tx.exists(sql.type(object())`
        select from pg_locks where not granted and transactionid = pg_current_xact_id()::xid`),
    )
    await tx.query(sql.unsafe`update broadcasts set state = 'cancelled' where id = ${id}`)
  })
  await until('no email waits', async () => (await waiting()).length === 0)
  t.equal(received(), 1)
})

t.test('DOMAIN_RAMP limits domains without history until turned off', async (t) => {
  const { service, cli, team, received, start, state } = await begin(t, { ramp: { limit: 1, factor: 2 } })
  const first = await start('ann', 'ben')
  await until('one has gone', () => received() === 1)
  t.equal(await state(first), 'sending')
  const other = await makeTeam(service)
  const casting = await broadcastingOf(service, other)
  await casting.contacts(['zoe'])
  const theirs = await casting.create()
  await casting.post(theirs, 'send')
  await until('another team’s email waits for the same limit', async () => {
    const waiting = await service.database.anyFirst(sql.type(idRow)`
      select id from email_states where broadcast_id = ${theirs} and unfinished`)
    const [shown] = await Promise.all(waiting.map((id) => cli.json(['email', 'show', other.id, id])))
    return /limit of 1 /.test(shown?.waiting.reason ?? '')
  })
  await cli.json(['domain', 'ramp', team.id, 'example.com', 'off'])
  await until('it is done', async () => (await state(first)) === 'sent')
  const next = await start('cleo')
  await until('the next is done', async () => (await state(next)) === 'sent')
  await until('all three contacts got it, and the other team’s its own', () => received() === 6)
})

t.test("test teams aren't ramped, and skip suppressed names", async (t) => {
  const { service, cli, team, casting, start, state, received } = await begin(t, {
    ...{ ramp: { limit: 1, factor: 2 }, test: true },
  })
  const id = await start('ann', 'ben', 'suppressed')
  await until('it is done', async () => (await state(id)) === 'sent')
  t.match((await casting.get(id)).body.stats, { made: 2, skipped: 1 })
  t.match(await cli.json(['domain', 'list', team.id]), [{ ramp: null }])
  await cli.json(['domain', 'ramp', team.id, 'example.com', '1'])
  const next = await start('bounced')
  await until('one bounced', async () => (await casting.get(next)).body.stats.bounced === 1)
  t.match(await cli.json(['domain', 'list', team.id]), [{ ramp: { limit: 1, used: 0 } }])
  const reports = await service.database.any(sql.unsafe`select kind from domain_ramp_reports`)
  t.equal(reports.length, 0, 'their bounces don’t count for the ramp of live teams')
  t.equal(received(), 0)
})

t.test("a broadcast's page offers owners a new domain's ramp-up", async (t) => {
  const { service, cli, team, casting } = await begin(t)
  const id = await casting.create()
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const page = `/teams/${team.id}/broadcasts/${id}`
  t.match((await owner.get(page)).html, /domains\/example\.com\/ramp/)
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  t.notMatch((await editor.get(page)).html, /domains\/example\.com\/ramp/)
  await cli.json(['domain', 'ramp', team.id, 'example.com', 'off'])
  t.notMatch((await owner.get(page)).html, /domains\/example\.com\/ramp/)
  for (const odd of ['many', '0', '-1'])
    t.match(await cli.fault(['domain', 'ramp', team.id, 'example.com', odd]), /LIMIT/)
})
