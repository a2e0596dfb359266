/** The sweep requeues messages whose job was lost, and reports failed ones. */
import { sql } from 'slonik'
import { resumeTeam, suspendTeam } from '../../../db/accounts/teams/suspend.ts'
import { resumeSender } from '../../../db/delivery/senders/show.ts'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { emailsToDeliver } from '../../../db/messages/emails/outgoing.sql.ts'
import { eventsOfMessage } from '../../../db/messages/whatsapp/events.sql.ts'
import { messagesToDeliver } from '../../../db/messages/whatsapp/messages.sql.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { queueStatus } from '../../../db/queue/jobs.sql.ts'
import { deletePauses, storePauses } from '../../../db/queue/pauses.sql.ts'
import { requeueStale } from '../../../workers/jobs/requeue-stale.ts'
import { adminCli } from '../../support/admin.ts'
import { runClock, shiftClock, stopClock } from '../../support/clock.ts'
import { EMPTY } from '../../support/empty.ts'
import { storeAll } from '../../support/ingestion.ts'
import { emailStatus, eventsOf, jobsIn, loseJobs, storedReports } from '../../support/reports.ts'
import { ageByADay, jobStates, sendersOf, setJobsDue } from '../../support/rows.ts'
import { pauseSender } from '../../support/senders.ts'
import { makeTeam, type Service, sendEmail, sendEmails } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

async function begin(t: Test) {
  const service = await renewed()
  const queue = await openConsumer(service.url, { connections: 3, onError: () => {} })
  t.teardown(() => queue.stop(1_000))
  const sweep = async (now: Date): Promise<void> => {
    const { database, log } = service.deps
    await stopClock(database, now)
    await requeueStale({ database, queue, log })
    await runClock(database)
  }
  return {
    service,
    queue,
    sweep,
    team: await makeTeam(service),
    cli: adminCli({ DATABASE_URL: service.url }),
  }
}

/** Simulates a crash at the last attempt: the queue's only job is dead-lettered silently. */
async function kill({ url, database }: Service, job: 'deliver-email' | 'deliver-whatsapp'): Promise<void> {
  const consumer = await openConsumer(url, { connections: 2, onError: () => {} })
  const claims = consumer.claims(job)
  const [claimed] = await claims.fetch(1)
  if (!claimed) throw new Error('there is no job')
  await database.query(sql.unsafe`update pgboss.job set retry_limit = retry_count where id = ${claimed.id}`)
  await database.transaction((tx) => claims.settle(tx, new Map([[claimed, { end: 'failed', reason: '' }]])))
  const dead = async () => (await queueStatus(database)).find(({ queue }) => queue === job)?.dead
  await until('it is dead', async () => (await dead()) === 1)
  await consumer.stop(1_000)
}

const later = (ms: number): Date => new Date(Date.now() + ms)
const gaveUps = async (service: Service, id: string) =>
  (await eventsOf(service, id)).filter(({ kind }) => kind === 'gave_up')

t.test('an email without a job gets one and requeued_at', async (t) => {
  const { service, sweep, team, cli } = await begin(t)
  const [lost, kept] = [await sendEmail(service, team), await sendEmail(service, team)]
  await loseJobs(service, [lost])
  await sweep(later(60_000))
  t.equal((await jobsIn(service, 'deliver-email')).length, 1, 'too early')
  await sweep(later(3_600_000))
  t.match(await cli.json(['email', 'show', team.id, lost]), {
    status: 'queued',
    requeued_at: /Z$/,
    events: [{ kind: 'requeued' }],
    waiting: { attempts: 0 },
  })
  t.match(await cli.json(['email', 'show', team.id, kept]), { requeued_at: null, events: EMPTY })
  t.equal((await jobsIn(service, 'deliver-email')).length, 2)
})

t.test('finds an email without a job behind a thousand', async (t) => {
  const { service, sweep, team } = await begin(t)
  await sendEmails(service, team, Array(1_000).fill({}))
  const lost = await sendEmail(service, team)
  await loseJobs(service, [lost])
  await sweep(later(3_600_000))
  t.match(await eventsOf(service, lost), [{ kind: 'requeued' }])
  t.equal((await jobsIn(service, 'deliver-email')).length, 1_001)
})

t.test('a half-sent email without its job sends only the rest', async (t) => {
  const { service, sweep, team } = await begin(t)
  let late = true
  const sink = await startSmtpSink(t, {
    onRcpt: (recipient) => (recipient.startsWith('later') && late ? '451 4.3.0 Later' : undefined),
  })
  const id = await sendEmail(service, team, { to: ['now@example.org', 'later@example.org'] })
  const first = await startWorker(t, service, { smtp_url: sink.url })
  await until('one has it', async () => (await emailStatus(service, id)) === 'sent')
  await first.stop()
  await loseJobs(service, [id])
  late = false
  await sweep(later(3_600_000))
  await startWorker(t, service, { smtp_url: sink.url })
  await until('both have it', () => sink.messages().length === 2)
  t.strictSame(sink.recipients(), [['now@example.org'], ['later@example.org']])
  t.match(await emailById(service.database, team.id, id), { requeued_at: /Z$/ })
})

t.test('the sweep keeps attempts, and a manual requeue resets them', async (t) => {
  const { service, sweep, team, cli } = await begin(t)
  const { database } = service
  const { id: template_id } = await makeTemplate(service, team.id)
  const email_id = await sendEmail(service, team)
  const [message_id = ''] = await sendWhatsapp(service, team, template_id)
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select ${team.id}, ${email_id}, decode(md5(n::text), 'hex'), 'unknown', now() + n * interval '3 minutes', ''
    from generate_series(1, 2) n`)
  await database.query(sql.unsafe`
    insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail)
    select ${team.id}, ${message_id}, decode(md5(n::text), 'hex'), 'unknown', now() + n * interval '3 minutes', ''
    from generate_series(1, 2) n`)
  const unknowns = async (): Promise<(number | undefined)[]> => {
    const [email] = await emailsToDeliver(database, [{ team_id: team.id, email_id }])
    const [message] = await messagesToDeliver(database, [{ team_id: team.id, message_id }])
    return [email?.unknowns, message?.unknowns]
  }
  await database.query(sql.unsafe`delete from pgboss.job`)
  await sweep(later(3_600_000))
  const states = [await jobStates(service, email_id), await jobStates(service, message_id)]
  t.same(states, [['created'], ['created']])
  t.strictSame(await unknowns(), [2, 2])
  // Sets this machine's clock ten minutes behind.
  await shiftClock(database, 600)
  await cli.json(['email', 'requeue', team.id, email_id])
  await cli.json(['whatsapp', 'requeue', team.id, message_id])
  t.strictSame(await unknowns(), [0, 0])
})

t.test('a report without its job gets a new one', async (t) => {
  const { service, sweep } = await begin(t)
  await storeAll(service, [Buffer.from('lost'), Buffer.from('with it')], 'smtp', ['lost', 'with it'])
  await storeAll(service, [Buffer.from('kept')], 'smtp', ['kept'])
  const reports = await storedReports(service)
  await loseJobs(service, [String((await jobsIn(service, 'ingest-report'))[0]?.report_id)])
  await sweep(later(60_000))
  t.equal((await jobsIn(service, 'ingest-report')).length, 1, 'too early')
  await sweep(later(3_600_000))
  const jobs = reports.map(({ id: report_id }) => ({ report_id }))
  t.strictSame(await jobsIn(service, 'ingest-report'), jobs)
})

t.test('reports a dead letter once, again after a requeue', async (t) => {
  const { service, sweep, team, cli } = await begin(t)
  const id = await sendEmail(service, team)
  await kill(service, 'deliver-email')
  await sweep(later(0))
  await sweep(later(1_000))
  t.match(await gaveUps(service, id), [{ recipient: null, detail: /stopped during every attempt/ }])
  t.match(await cli.json(['queue', 'status']), [{ queue: 'deliver-email', dead: 1 }])
  t.equal((await jobsIn(service, 'deliver-email')).length, 0, 'what was given up waits for a person')

  t.match(await cli.json(['queue', 'redrive', 'deliver-email']), { redriven: 1 })
  t.match(await cli.json(['email', 'show', team.id, id]), {
    requeued_at: /Z$/,
    events: [{ kind: 'gave_up' }, { kind: 'requeued' }],
  })
  await kill(service, 'deliver-email')
  await sweep(later(2_000))
  await sweep(later(3_000))
  t.equal((await gaveUps(service, id)).length, 2)
})

t.test('an email stays failed without its dead letter', async (t) => {
  const { service, sweep, team } = await begin(t)
  const { id: template_id } = await makeTemplate(service, team.id)
  const email = await sendEmail(service, team)
  const [message = ''] = await sendWhatsapp(service, team, template_id)
  await kill(service, 'deliver-email')
  await kill(service, 'deliver-whatsapp')
  await sweep(later(0))
  t.equal((await gaveUps(service, email)).length, 1)
  t.match(await eventsOfMessage(service.database, team.id, message), [
    { kind: 'gave_up', detail: /stopped during every attempt/ },
  ])
  // Deletes jobs like pg-boss after its retention.
  await service.database.query(sql.unsafe`delete from pgboss.job`)
  await sweep(later(31 * 86_400_000))
  t.strictSame(await jobsIn(service, 'deliver-email'), [])
  t.strictSame(await jobsIn(service, 'deliver-whatsapp'), [])
})

t.test('an email past its deadline bounces with the last response', async (t) => {
  const { service, sweep, team, cli } = await begin(t)
  const sink = await startSmtpSink(t, { onRcpt: () => '451 4.3.0 Come back later' })
  const id = await sendEmail(service, team)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it was put off', async () => (await jobStates(service, id))[0] === 'retry')
  const { waiting } = await cli.json(['email', 'show', team.id, id])
  t.match(waiting, { next_attempt_at: /Z$/, last_response: '451 4.3.0 Come back later' })
  await ageByADay(service, id)
  await setJobsDue(service, id)
  await until('it bounces', async () => (await emailStatus(service, id)) === 'bounced')
  await until('its job is over', async () => (await jobsIn(service, 'deliver-email')).length === 0)
  await sweep(later(60_000))
  t.strictSame(await jobsIn(service, 'deliver-email'), [])
  t.strictSame(await gaveUps(service, id), [])
  const shown = await cli.json(['email', 'show', team.id, id])
  t.match(shown, { status: 'bounced', provider_message_id: null })
  const bounce = shown.events.find(({ kind }: { kind: string }) => kind === 'bounced')
  t.match(bounce, { recipient: 'someone@example.org', detail: /^4\.4\.7 .*451 4\.3\.0 Come back later$/ })
  const deferral = shown.events.find(({ kind }: { kind: string }) => kind === 'deferred')
  t.match(deferral, { time: /Z$/, recipient: 'someone@example.org', detail: '451 4.3.0 Come back later' })
})

t.test("pauses don't count towards the 24 h", async (t) => {
  const { service, team } = await begin(t)
  const { database } = service
  const sink = await startSmtpSink(t, { onRcpt: () => '451 4.3.0 Come back later' })
  const id = await sendEmail(service, team)
  const { stop } = await startWorker(t, service, { smtp_url: sink.url })
  const deferrals = async () => (await eventsOf(service, id)).filter(({ kind }) => kind === 'deferred').length
  await until('it was put off', async () => (await deferrals()) === 1)
  await stop()
  const key = (await sendersOf(service))[0]?.key ?? `smtp:${new URL(sink.url).host}`
  const sender = { key, ceiling: 10 }
  await storePauses(database, ['deliver-email'], { paused_by: 'cli' }, new Date())
  await shiftClock(database, 10 * 3_600)
  await database.transaction((tx) => suspendTeam({ tx, now: new Date(), actor: 'cli' }, team.id))
  await deletePauses(database, ['deliver-email'])
  await shiftClock(database, 20 * 3_600)
  await database.transaction((tx) => pauseSender(tx, sender, 86_400, 'over quota'))
  await database.transaction((tx) => resumeTeam({ tx, now: new Date(), actor: 'cli' }, team.id))
  await shiftClock(database, 30 * 3_600)
  await resumeSender({ tx: database, now: new Date(), actor: 'cli' }, key)
  await setJobsDue(service, id)
  const again = await startWorker(t, service, { smtp_url: sink.url })
  await until('it was tried again', async () => (await deferrals()) === 2)
  t.equal(await emailStatus(service, id), 'queued')
  await again.stop()
  await shiftClock(database, 55 * 3_600)
  await setJobsDue(service, id)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it bounces', async () => (await emailStatus(service, id)) === 'bounced')
})

t.test('a suspended team’s emails wait for resume and sweep', async (t) => {
  const { service, sweep, team, cli } = await begin(t)
  const sink = await startSmtpSink(t)
  const other = await makeTeam(service)
  const [held, free] = [await sendEmail(service, team), await sendEmail(service, other)]
  await suspendTeam({ tx: service.database, now: new Date(), actor: 'cli' }, team.id)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('the other team’s is sent', async () => (await emailStatus(service, free)) === 'sent')
  await until('its job is over', async () => (await jobsIn(service, 'deliver-email')).length === 0)
  await sweep(later(3_600_000))
  const email = await cli.json(['email', 'show', team.id, held])
  t.match(email, { status: 'queued', requeued_at: null, events: EMPTY, waiting: { team_suspended: true } })
  const paused = [{ what: 'team A team', until: null, reason: 'suspended' }]
  t.match(await cli.json(['email', 'requeue', team.id, held]), { paused })
  t.match(await cli.json(['email', 'requeue', team.id, '--status', 'queued']), { requeued: 1, paused })
  await cli.json(['team', 'resume', team.id])
  t.match(await cli.json(['email', 'show', team.id, held]), { waiting: { team_suspended: false } })
  await sweep(later(0))
  await until('it is sent', async () => (await emailStatus(service, held)) === 'sent')
})
