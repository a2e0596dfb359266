/** Wake-ups: every accept sends hints after the commit, hints are combined, and none is required. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { number, object } from 'yup'
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import type { JobName } from '../../../db/queue/jobs.ts'
import { createWaker, onWake } from '../../../db/queue/wake.ts'
import { adminCli } from '../../support/admin.ts'
import { anEmail, makeTeam, SMTP_REPORT_TOKEN, sendEmail, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'
import { until } from '../../support/worker.ts'

const COUNT = sql.type(object({ n: number().defined() }))

const waiting = async (job: JobName): Promise<number> =>
  (await service.database.one(COUNT`select count(*) as n from pgboss.job where name = ${job}`)).n

const hinted: { job: JobName; stored: Promise<number> }[] = []
const service = await startService(t, {
  upsertWait: 100,
  // What another connection sees at that moment, which excludes rows of open transactions.
  wake: (job) => void hinted.push({ job, stored: waiting(job) }),
})
const { call } = service
const { id: teamId, key } = await makeTeam(service)

t.test('every accept sends a hint after its jobs are committed', async (t) => {
  const { id } = await makeTemplate(service, teamId)
  const message = aMessage(id)
  const calls: [JobName, string, unknown][] = [
    ['deliver-email', '/v1/emails', anEmail()],
    ['deliver-email', '/v1/emails/batch', { emails: [anEmail(), anEmail()] }],
    ['deliver-whatsapp', '/v1/whatsapp/messages', message],
    ['deliver-whatsapp', '/v1/whatsapp/messages/batch', { messages: [message, message] }],
    ['upsert-contacts', '/v1/contacts/bulk', { contacts: [{ email: 'a@example.org' }] }],
  ]
  for (const [job, path, body] of calls) {
    const before = await waiting(job)
    hinted.length = 0
    await call('POST', path, { key, body })
    const jobs = hinted.map((hint) => hint.job)
    t.strictSame(jobs, [job], path)
    t.equal(await hinted[0]?.stored, await waiting(job))
    t.ok((await waiting(job)) > before)
  }
  hinted.length = 0
  const headers = { 'Content-Type': 'message/rfc822' }
  const to = returnPath(service.deps.secrets, { team_id: uuidv7(), id: uuidv7() }, 'example.com')
  await call('POST', '/hooks/smtp', { key: SMTP_REPORT_TOKEN, raw: `To: ${to}\r\n\r\n`, headers })
  t.match(hinted, [{ job: 'ingest-report' }])
  t.equal(await hinted[0]?.stored, 1)
})

t.test('replays and rejected sends send no hint', async (t) => {
  const body = anEmail({ idempotency_key: 'once' })
  await call('POST', '/v1/emails', { key, body })
  hinted.length = 0
  t.equal((await call('POST', '/v1/emails', { key, body })).status, 200)
  t.equal((await call('POST', '/v1/emails', { key, body: anEmail({ to: [] }) })).status, 400)
  t.strictSame(hinted, [])
})

t.test('sends a hint after a commit, none after a rollback', async (t) => {
  const { database, deps } = service
  const payload = { team_id: teamId, upsert_id: uuidv7() }
  hinted.length = 0
  const undone = database.transaction(async (tx) => {
    await deps.queue.enqueue(tx, 'upsert-contacts', [payload])
    throw new Error('undone')
  })
  await t.rejects(undone, /undone/)
  t.strictSame(hinted, [])
  await database.transaction(async (tx) => {
    await deps.queue.enqueue(tx, 'upsert-contacts', [payload])
    t.strictSame(hinted, [], 'not before it is committed')
  })
  t.match(hinted, [{ job: 'upsert-contacts' }])
  hinted.length = 0
  await database.transaction((tx) => deps.queue.enqueue(tx, 'upsert-contacts', [payload]))
  t.strictSame(hinted, [], 'the job was there')
})

t.test('combines hints per queue, and wakes all after a reconnection', async (t) => {
  const heard: string[] = []
  const listener = onWake(service.url, ['deliver-email', 'ingest-report'], (job) => heard.push(job))
  t.teardown(() => listener.close())
  const everyQueue = (): boolean => ['deliver-email', 'ingest-report'].every((job) => heard.includes(job))
  await until('it listens', everyQueue)
  heard.length = 0
  const wake = createWaker(service.database)
  for (let time = 0; time < 100; time++) wake('deliver-email')
  wake('ingest-report')
  await until('both are heard', everyQueue)
  t.strictSame(heard.toSorted(), ['deliver-email', 'ingest-report'])
  heard.length = 0
  await service.database.query(COUNT`
    select count(pg_terminate_backend(pid)) as n from pg_stat_activity
    where application_name = 'heliograph listen' and datname = current_database()`)
  await until('it listens again', everyQueue)
})

t.test('the CLI sends hints before it exits', async (t) => {
  const id = await sendEmail(service, { key })
  const heard: string[] = []
  const listener = onWake(service.url, ['deliver-email'], (job) => heard.push(job))
  t.teardown(() => listener.close())
  const isHeard = (): boolean => heard.includes('deliver-email')
  await until('it listens', isHeard)
  heard.length = 0
  const cli = adminCli({ DATABASE_URL: service.url })
  t.match(await cli.json(['email', 'requeue', teamId, id]), { status: 'queued' })
  await until('it is heard', isHeard)
})
