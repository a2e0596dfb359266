/**
 * Scheduled messages sent by real workers: never early, never twice, never lost, and never a cancelled one.
 * DECISIONS: Scheduled messages.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { number, object } from 'yup'
import { releaseAll } from '../../db/delivery/schedule.ts'
import { eventsOfEmail } from '../../db/messages/emails/events.sql.ts'
import { emailsToDeliver } from '../../db/messages/emails/outgoing.sql.ts'
import { showEmail } from '../../db/messages/emails/show.ts'
import { cancelScheduled, moveScheduled } from '../../db/messages/scheduled.ts'
import { showMessage } from '../../db/messages/whatsapp/show.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { runClock, shiftClock } from '../support/clock.ts'
import { startCloud } from '../support/cloud.ts'
import { hold } from '../support/held.ts'
import { jobStates, jobsOf, lockWaits } from '../support/rows.ts'
import { makeTeam, type Service, sendEmail, type TestTeam, worldOf } from '../support/service.ts'
import { shareService } from '../support/shared-service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t, { type Test } from '../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../support/whatsapp.ts'
import { startProcess, startWorker, until } from '../support/worker.ts'

const renewed = await shareService(t)

const HOUR = 3_600_000
const ahead = (ms: number): string => new Date(Date.now() + ms).toISOString()

async function begin(t: Test) {
  const { service, team } = await worldOf(await renewed())
  t.teardown(() => runClock(service.database))
  const release = () => releaseAll(service.deps)
  return { service, team, release }
}

/** Schedules many in one statement like a batch: copies of an accepted one. */
const scheduleMany = async ({ database }: Service, { id: team }: TestTeam, count: number, due: Date) => {
  await database.query(sql.unsafe`
    with model as (select * from accepted_emails where team_id = ${team} limit 1), made as (
      insert into accepted_emails (team_id, id, domain_id, from_address, to_emails, subject, html, reply_to, tags, created_at)
      select team_id, gen_random_uuid(), domain_id, from_address, to_emails, 'Scheduled', html, reply_to, tags, now()
      from model, generate_series(1, ${count}) returning team_id, id, created_at
    )
    insert into email_states (team_id, id, created_at, status, scheduled_at, due_at)
    select team_id, id, created_at, 'queued', ${sql.timestamp(due)}, ${sql.timestamp(due)} from made`)
}

t.test('nothing is sent before its time, and everything after', async (t) => {
  const { service, team, release } = await begin(t)
  const [soon, later] = [
    await sendEmail(service, team, { scheduled_at: ahead(HOUR) }),
    await sendEmail(service, team, { scheduled_at: ahead(2 * HOUR) }),
  ]
  await release()
  t.strictSame(await jobStates(service, soon), [])
  await shiftClock(service.database, 3_600 + 60)
  await release()
  await release()
  t.strictSame(await jobStates(service, soon), ['created'])
  t.strictSame(await jobStates(service, later), [])
  const { scheduled_at } = await showEmail(
    { ...service.deps, tx: service.database, now: new Date(), publicUrl: undefined },
    team.id,
    soon,
  )
  const [row] = await emailsToDeliver(service.database, [{ team_id: team.id, email_id: soon }])
  t.equal(row?.since, scheduled_at, 'its tries and hours count from its time')
})

t.test('a release that fails half-way has enqueued nothing', async (t) => {
  const { service, team, release } = await begin(t)
  const id = await sendEmail(service, team, { scheduled_at: ahead(HOUR) })
  await shiftClock(service.database, 3_600 + 60)
  const queue = { enqueue: () => Promise.reject(new Error('killed')) }
  await t.rejects(releaseAll({ database: service.database, queue }), /killed/)
  await release()
  t.strictSame(await jobStates(service, id), ['created'])
})

t.test('the first of a concurrent release, cancellation or move wins', async (t) => {
  const { service, team, release } = await begin(t)
  const { database } = service
  const by = { now: new Date(), actor: 'cli' as const }
  const named = (id: string) => ({ channel: 'email' as const, team_id: team.id, id })
  for (const act of ['cancel', 'move'] as const) {
    const late = await sendEmail(service, team, { scheduled_at: ahead(HOUR) })
    const first = await sendEmail(service, team, { scheduled_at: ahead(HOUR) })
    const other = ahead(2 * HOUR)
    const acted = (id: string, tx: Tx) =>
      act === 'cancel'
        ? cancelScheduled({ ...by, tx }, named(id))
        : moveScheduled({ ...by, tx }, named(id), other)
    await shiftClock(database, 3_600 + 60)
    const commit = await hold(t, database, (tx) => acted(first, tx))
    await release()
    t.strictSame(await jobStates(service, late), ['created'], 'what nobody holds is let go')
    await commit()
    await release()
    t.strictSame(await jobStates(service, first), [], `${act}: it was held first`)
    await runClock(database)

    const released = await sendEmail(service, team, { scheduled_at: ahead(HOUR) })
    await shiftClock(database, 3_600 + 60)
    const [letGo, waits] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const queue: typeof service.deps.queue = {
      ...service.deps.queue,
      enqueue: async (...given) => {
        // The rows are locked, and nothing is committed.
        letGo.resolve()
        await waits.promise
        return service.deps.queue.enqueue(...given)
      },
    }
    const releasing = releaseAll({ database, queue })
    await letGo.promise
    const reply = database.transaction((tx) => acted(released, tx)).catch((error) => error)
    await until('it waits for the row', async () => (await lockWaits(service)) > 0)
    waits.resolve()
    await releasing
    t.match(await reply, { code: 'invalid_state' }, `${act}: it was let go first`)
    t.strictSame(await jobStates(service, released), ['created'])
    await runClock(database)
  }
})

t.test('sends on time, and counts latency from there', async (t) => {
  const { service, team } = await begin(t)
  const sink = await startSmtpSink(t)
  const at = Date.now() + 3_000
  const id = await sendEmail(service, team, { scheduled_at: new Date(at).toISOString() })
  const now = await sendEmail(service, team, {})
  await startWorker(t, service, { smtp_url: sink.url })
  const events = () => eventsOfEmail(service.database, team.id, id)
  await until('it is sent', async () => (await events()).some(({ kind }) => kind === 'sent'))
  const [sent] = await events()
  t.ok(Date.parse(sent?.occurred_at ?? '') >= at, 'not early')
  t.ok(now)
  const dates = sink.messages().map(({ raw }) => Date.parse(/^Date: (.*)$/m.exec(String(raw))?.[1] ?? ''))
  t.equal(dates.length, 2)
  t.ok(dates.includes(Math.floor(at / 1_000) * 1_000), 'its Date is the scheduled time')
})

t.test('a scheduled email is dated by its scheduled time', async (t) => {
  const { service, team, release } = await begin(t)
  const sink = await startSmtpSink(t)
  const at = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 30 * 24 * HOUR)
  await sendEmail(service, team, { scheduled_at: at.toISOString(), subject: 'Later' })
  const past = ahead(-60_000)
  await sendEmail(service, team, { scheduled_at: past, subject: 'Now' })
  await shiftClock(service.database, 30 * 24 * 3_600 + 60)
  await release()
  await startWorker(t, service, { smtp_url: sink.url })
  await until('both are sent', () => sink.messages().length === 2)
  const mails = await Promise.all(sink.messages().map((one) => one.parsed()))
  const dateOf = (subject: string) => mails.find((mail) => mail.subject === subject)?.date
  t.equal(new Date(dateOf('Later') ?? '').getTime(), at.getTime())
  t.ok(new Date(dateOf('Now') ?? '').getTime() >= Date.parse(past) + 59_000, 'accepted after its time')
})

t.test('a cancelled email is never sent', async (t) => {
  const { service, team, release } = await begin(t)
  const { key } = team
  const ids: string[] = []
  for (let index = 0; index < 40; index += 1)
    ids.push(await sendEmail(service, team, { scheduled_at: ahead(HOUR), subject: `Number ${index}` }))
  await shiftClock(service.database, 3_600 + 60)
  const cancelling = ids.map((id) => service.call('POST', `/v1/emails/${id}/cancel`, { key }))
  const [replies] = await Promise.all([
    Promise.all(cancelling),
    sleep(20).then(release),
    sleep(30).then(release),
  ])
  const statuses = replies.map(({ status }) => status)
  t.ok(statuses.every((status) => status === 200 || status === 409))
  for (const [index, id] of ids.entries())
    t.equal((await jobStates(service, id)).length, statuses[index] === 200 ? 0 : 1, `${statuses[index]}`)
})

t.test('one team’s nine o’clock doesn’t delay another’s', async (t) => {
  const { service, team, release } = await begin(t)
  const other = await makeTeam(service)
  await sendEmail(service, team, {})
  const due = new Date(Date.now() + HOUR)
  await scheduleMany(service, team, 3_000, due)
  const id = await sendEmail(service, other, { scheduled_at: new Date(due.getTime() + 1_000).toISOString() })
  await shiftClock(service.database, 3_600 + 60)
  const { database, deps } = service
  // It ends after it has enqueued one batch.
  const closing = new AbortController()
  const queue = {
    enqueue: (...given: Parameters<typeof deps.queue.enqueue>) => {
      closing.abort()
      return deps.queue.enqueue(...given)
    },
  }
  await releaseAll({ database, queue: queue as typeof deps.queue }, closing.signal)
  t.ok((await jobsOf(service, team.id)).length <= 501)
  t.strictSame(await jobStates(service, id), ['created'], 'it is in the first batch')
  await release()
  t.equal((await jobsOf(service, team.id)).length, 3_001)
  const placeRow = object({ place: number().defined() })
  const { place } = await database.one(sql.type(placeRow)`
    select count(*) as place from pgboss.job j, pgboss.job own
    where own.id = ${id} and j.name = 'deliver-email' and j.priority > own.priority`)
  t.ok(place < 10, `${place} jobs stand before it`)
  const single = await sendEmail(service, team, {})
  const { place: before } = await database.one(sql.type(placeRow)`
    select count(*) as place from pgboss.job j, pgboss.job own
    where own.id = ${single} and j.name = 'deliver-email' and j.priority > own.priority`)
  t.ok(before < 10, `${before} jobs stand before what the team sends singly now`)
})

t.test('a restored copy enqueues nothing until its queues are resumed', async (t) => {
  const { service, team, release } = await begin(t)
  const id = await sendEmail(service, team, { scheduled_at: ahead(HOUR) })
  await shiftClock(service.database, 3_600 + 60)
  await service.database.query(sql.unsafe`
    insert into paused_queues (queue, paused_at, reason) values ('deliver-email', now(), 'restored')`)
  await release()
  t.strictSame(await jobStates(service, id), [])
  await service.database.query(sql.unsafe`delete from paused_queues`)
  await service.database.query(sql.unsafe`alter function is_at_home() rename to is_really_at_home`)
  await service.database.query(sql.unsafe`
    create function is_at_home() returns boolean language sql stable as 'select false'`)
  await release()
  t.strictSame(await jobStates(service, id), [], 'before any process has paused it, too')
  await service.database.query(sql.unsafe`drop function is_at_home()`)
  await service.database.query(sql.unsafe`alter function is_really_at_home() rename to is_at_home`)
  await release()
  t.strictSame(await jobStates(service, id), ['created'])
})

t.test('WhatsApp messages wait, are enqueued and expire likewise', async (t) => {
  const { service, team, release } = await begin(t)
  const template = await makeTemplate(service, team.id)
  const [id = ''] = await sendWhatsapp(service, team, template.id, { scheduled_at: ahead(HOUR) })
  const state = async () =>
    (await showMessage({ tx: service.database, now: new Date() }, team.id, id)).waiting?.state
  t.equal(await state(), 'scheduled')
  await release()
  t.strictSame(await jobStates(service, id), [])
  await shiftClock(service.database, 3_600 + 60)
  await release()
  t.strictSame(await jobStates(service, id), ['created'])
  t.equal(await state(), 'not_taken_yet')
  const brief = { expires_in: 60, to: ['+15555550199'] }
  const [code = ''] = await sendWhatsapp(service, team, template.id, brief)
  await shiftClock(service.database, 3_600 + 200)
  const cloud = await startCloud(t)
  await startWorker(t, service, { whatsapp: cloud.delivery })
  const shown = () => showMessage({ tx: service.database, now: new Date() }, team.id, code)
  await until('it is given up', async () => (await shown()).waiting?.state === 'failed')
  t.match(await shown(), { status: 'queued', waiting: { last_response: /^expired: / } })
  await until('the other one is sent', async () => cloud.messages().length > 0)
  t.equal(cloud.messages().length, 1)
})

t.test('killing workers while enqueuing loses and doubles nothing', async (t) => {
  const { service, team } = await begin(t)
  const sink = await startSmtpSink(t)
  await sendEmail(service, team, { to: ['first@example.org'] })
  await scheduleMany(service, team, 400, new Date(Date.now() + 3_000))
  const env = { DATABASE_URL: service.url, SMTP_URL: sink.url, WORKER_CONCURRENCY: '5' }
  for (let round = 0; round < 2; round += 1) {
    const worker = await startProcess(t, 'workers/main.ts', env)
    await sleep(2_500)
    worker.kill()
    await worker.exited
  }
  await startProcess(t, 'workers/main.ts', env)
  const waitingRow = object({ waiting: number().defined() })
  const waiting = async () =>
    (
      await service.database.one(sql.type(waitingRow)`
        select count(*) as waiting from email_states where team_id = ${team.id} and status = 'queued'`)
    ).waiting
  await until('all are sent', async () => (await waiting()) === 0)
  const ids = sink.messages().map(({ raw }) => /^Message-ID: (.*)$/im.exec(raw.toString())?.[1])
  t.equal(new Set(ids).size, 401)
})
