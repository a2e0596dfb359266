/**
 * Waiting messages of a suspended team, and how they are sent after the resume. DECISIONS: Scheduled
 * messages.
 */
import { sql } from 'slonik'
import { resumeTeam, suspendTeam } from '../../db/accounts/teams/suspend.ts'
import { releaseAll } from '../../db/delivery/schedule.ts'
import { adminCli } from '../support/admin.ts'
import { runClock, shiftClock } from '../support/clock.ts'
import { emailStatus, jobsIn } from '../support/reports.ts'
import { jobStates } from '../support/rows.ts'
import { makeTeam, type Service, sendEmail, worldOf } from '../support/service.ts'
import { shareService } from '../support/shared-service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t, { type Test } from '../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../support/whatsapp.ts'
import { startWorker, until } from '../support/worker.ts'

const renewed = await shareService(t)

const HOUR = 3_600_000
const ahead = (ms: number): string => new Date(Date.now() + ms).toISOString()

async function begin(t: Test) {
  const { service, team } = await worldOf(await renewed())
  t.teardown(() => runClock(service.database))
  const by = { now: new Date(), actor: 'cli' as const }
  const change = (act: typeof suspendTeam, id: string) =>
    service.database.transaction((tx) => act({ ...by, tx }, id))
  return {
    ...{ service, team, cli: adminCli({ DATABASE_URL: service.url }) },
    suspend: (id: string) => change(suspendTeam, id),
    resume: (id: string) => change(resumeTeam, id),
  }
}

const SUSPENDED = { state: 'suspended', reason: 'the team is suspended', next_attempt_at: null }

/** Stores copies of an accepted email without a job, like those of a suspended team. */
const copy = async ({ database }: Service, team: string, id: string, count: number) => {
  await database.query(sql.unsafe`
    with made as (
      insert into accepted_emails (team_id, id, domain_id, from_address, to_emails, subject, html, reply_to, tags, created_at)
      select team_id, gen_random_uuid(), domain_id, from_address, to_emails, 'Copy', html, reply_to, tags, now()
      from accepted_emails, generate_series(1, ${count}) where team_id = ${team} and id = ${id}
      returning team_id, id, created_at
    )
    insert into email_states (team_id, id, created_at, status)
    select team_id, id, created_at, 'queued' from made`)
}

t.test("a resume sends a team's due messages within seconds", async (t) => {
  const { service, team, cli, suspend } = await begin(t)
  const sink = await startSmtpSink(t)
  const template = await makeTemplate(service, team.id)
  const id = await sendEmail(service, team, { scheduled_at: ahead(HOUR) })
  const short = await sendEmail(service, team, { scheduled_at: ahead(HOUR), expires_in: 60 })
  const [message = ''] = await sendWhatsapp(service, team, template.id, { scheduled_at: ahead(HOUR) })
  const queued = await sendEmail(service, team)
  await suspend(team.id)
  const show = (which: string, noun = 'email') => cli.json([noun, 'show', team.id, which])
  t.match(await show(id), { waiting: { state: 'scheduled', reason: null } }, 'before its time')
  await shiftClock(service.database, 3_600 + 300)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('the job is deleted', async () => (await jobsIn(service, 'deliver-email')).length === 0)
  await releaseAll(service.deps)
  for (const each of [id, short, queued]) t.match(await show(each), { status: 'queued', waiting: SUSPENDED })
  t.match(await show(message, 'whatsapp'), { waiting: SUSPENDED })
  const due = await service.database.oneFirst(sql.unsafe`select due_at from email_states where id = ${id}`)
  t.not(due, null, 'it is still due')

  await cli.json(['team', 'resume', team.id])
  for (const each of [id, queued])
    await until('it is sent', async () => (await emailStatus(service, each)) === 'sent')
  await until('it has expired', async () => (await show(short)).waiting.state === 'failed')
  t.match(await show(short), { status: 'queued', waiting: { last_response: /^expired: / } })
  t.match(await show(queued), { requeued_at: null }, 'it was never lost')
})

t.test('the second pass finds a job deleted after the resume', async (t) => {
  const { service, team, suspend, resume } = await begin(t)
  const id = await sendEmail(service, team)
  await suspend(team.id)
  await resume(team.id)
  await releaseAll(service.deps)
  t.strictSame(await jobStates(service, id), ['created'], 'it has kept its job')
  await service.database.query(sql.unsafe`delete from pgboss.job where id = ${id}`)
  await releaseAll(service.deps)
  t.strictSame(await jobStates(service, id), [])
  await shiftClock(service.database, 15)
  await releaseAll(service.deps)
  t.strictSame(await jobStates(service, id), ['created'])
  const left = await service.database.any(sql.unsafe`select * from resumed_teams`)
  t.strictSame(left, [], 'all passes have ended')
})

t.test('a large resumed team’s messages alternate with others', async (t) => {
  const { service, team, suspend, resume } = await begin(t)
  const other = await makeTeam(service)
  const model = await sendEmail(service, team)
  await suspend(team.id)
  await suspend(other.id)
  await copy(service, team.id, model, 3_000)
  await service.database.query(sql.unsafe`delete from pgboss.job where id = ${model}`)
  await resume(team.id)
  await resume(other.id)
  const late = await sendEmail(service, other)
  await releaseAll(service.deps)
  const jobs = await jobsIn(service, 'deliver-email')
  t.equal(jobs.length, 3_002)
  const place = await service.database.oneFirst(sql.unsafe`
    select count(*)::int as count from pgboss.job j, pgboss.job own
    where own.id = ${late} and j.name = 'deliver-email' and j.priority > own.priority`)
  t.ok(Number(place) <= 2, `${place} jobs go before the other team’s`)
})

t.test('a team’s resume doesn’t send failed messages', async (t) => {
  const { service, team, suspend, resume } = await begin(t)
  const id = await sendEmail(service, team)
  await service.database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    values (${team.id}, ${id}, decode(md5('x'), 'hex'), 'gave_up', now() + interval '1 minute', 'no')`)
  await service.database.query(sql.unsafe`delete from pgboss.job where id = ${id}`)
  await suspend(team.id)
  await resume(team.id)
  await releaseAll(service.deps)
  t.strictSame(await jobStates(service, id), [])
})
