/**
 * Contents and secrets stay where they belong. Every test looks for them through its support (support/canary.ts): here
 * a journey carries one of each kind, and the look itself is proved able to fail.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { sql } from 'slonik'
import type { SMTPServerOptions } from 'smtp-server'
import { createApp } from '../api/app.ts'
import { storeReports } from '../db/delivery/reports/store.ts'
import { pausedSenders } from '../db/delivery/senders/senders.sql.ts'
import { cloudError, statusWebhook } from './sandbox/whatsapp.ts'
import { createCanary } from './support/canary.ts'
import { startCloud } from './support/cloud.ts'
import { noteRest } from './support/database.ts'
import { watchedLog } from './support/log.ts'
import { reserveOne } from './support/senders.ts'
import { anEmail, caller, listen, makeTeam, world } from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import t from './support/tap.ts'
import { aMessage, makeTemplate, postUpdates, sendWhatsapp, templateOf } from './support/whatsapp.ts'
import { startWorker, until } from './support/worker.ts'

const { service, team } = await world(t)
const RECIPIENT = 'canary-recipient@example.org'
const CONTENTS = {
  to: [RECIPIENT],
  subject: 'canary of a subject 7f31',
  html: '<p>canary of html 7f31</p>',
  text: 'canary of a text 7f31',
  headers: { 'X-Canary': 'canary of a header 7f31' },
  reply_to: 'canary-reply@example.org',
  tags: ['canary of a tag 7f31'],
}

/** Accepts every login. */
const onAuth: SMTPServerOptions['onAuth'] = ({ username }, _, done) => done(null, { user: username })

t.test('no log, error, job or metric contains contents or secrets', async (t) => {
  const own = createCanary()
  const log = watchedLog(own)
  const call = caller(await listen(t, createApp({ ...service.deps, log })), own)
  const busy = (recipient: string) => `451 4.2.1 ${recipient} is busy: canary of html 7f31`
  const server = { disabledCommands: ['STARTTLS'], allowInsecureAuth: true, onAuth }
  const sink = await startSmtpSink(t, { onRcpt: busy }, { server })
  const password = 'canary-of-a-password-7f31'
  const smtp_url = sink.url.replace('//', `//user:${password}@`)
  own.secrets(password)
  const { key } = team
  const sent = await call('POST', '/v1/emails', { key, body: anEmail(CONTENTS) })
  t.equal(sent.status, 201)
  await call('POST', '/v1/emails', { key, body: { ...anEmail(CONTENTS), to: RECIPIENT } })
  await call('POST', '/v1/emails', { key, body: anEmail({ ...CONTENTS, from: 'canary@unknown.test' }) })
  await call('POST', '/v1/emails', { key: `${key}x`, body: anEmail(CONTENTS) })
  const properties = { city: 'canary of a property 7f31' }
  await call('POST', '/v1/contacts', { key, body: { email: RECIPIENT, properties } })
  await call('POST', '/v1/contacts', { key, body: { email: RECIPIENT, properties } })
  const { id } = await makeTemplate(service, team.id)
  const parameters = { 'body:1': 'canary of a parameter 7f31' }
  const message = aMessage(id, { to: ['+15555550142'], parameters })
  t.equal((await call('POST', '/v1/whatsapp/messages', { key, body: message })).status, 201)
  await call('POST', '/v1/whatsapp/messages', { key, body: { ...message, parameters: { x: 'y' } } })
  await startWorker(t, service, { smtp_url, log })
  const tries = sql.unsafe`select 1 from email_events where email_id = ${sent.body.id}`
  await until('the email was put off', () => service.database.exists(tries))
  await noteRest(service.url, own)
  t.strictSame(own.leaks(), [])
})

t.test('recipients don’t appear when their sender is slowed or paused', async (t) => {
  const own = createCanary()
  const log = watchedLog(own)
  const said = new Map([
    ['canary-slow@example.org', '421 4.7.0 Too much mail to <canary-slow@example.org>'],
    ['canary-relay@example.org', '454 4.7.1 canary-relay@example.org: Relay access denied'],
  ])
  const sink = await startSmtpSink(t, { onRcpt: (recipient) => said.get(recipient) })
  const other = await makeTeam(service)
  for (const to of said.keys()) {
    const body = anEmail({ to: [to] })
    own.contents({ to: [to] })
    t.equal((await service.call('POST', '/v1/emails', { key: other.key, body })).status, 201)
  }
  const worker = await startWorker(t, service, { smtp_url: sink.url, log })
  for (const kind of ['slowed', 'paused']) {
    const happened = sql.unsafe`
      select 1 from sender_events where kind = ${kind} and detail like '%canary-%'`
    await until(`its sender is ${kind}`, () => service.database.exists(happened))
  }
  // A line comes after its commit.
  await worker.stop()
  t.strictSame(own.leaks(), [])
})

t.test('recipients in reports don’t appear, applied or parked', async (t) => {
  const own = createCanary()
  const log = watchedLog(own)
  const to = ['+15555550177', 'ana@x.test']
  own.contents({ to })
  const { deps, database } = service
  const report = {
    provider: 'whatsapp',
    event_key: 'x',
    body: Buffer.from(to[1] ?? ''),
    received_at: new Date(),
  } as const
  await database.transaction((tx) => storeReports({ tx, queue: deps.queue }, [report]))
  const { id } = await makeTemplate(service, team.id)
  const [message] = await sendWhatsapp(service, team, id, { to: to.slice(0, 1) })
  await reserveOne(database, { key: 'whatsapp:100', ceiling: 80 }, [1], 1)
  const fault = { code: 131042, title: `No money for ${to[0]}` }
  const status = {
    id: 'wamid.1',
    status: 'failed',
    recipient_id: '1',
    timestamp: `${Math.floor(Date.now() / 1_000)}`,
  }
  const of = { biz_opaque_callback_data: `${team.id}:${message}`, errors: [fault] }
  t.equal((await postUpdates(service, statusWebhook('100', [{ ...status, ...of }]))).status, 200)
  const onMessage = () => ({ status: 400, body: cloudError(132000, `Not for ${to[0]}`, '') })
  const cloud = await startCloud(t, { script: { onMessage } }, { phone_number_id: '200' })
  const worker = await startWorker(t, service, { log, whatsapp: cloud.delivery })
  await until('its template is blamed', async () =>
    /Not for/.test((await templateOf(service, id)).fault ?? ''),
  )
  await until('its sender is paused', async () =>
    (await pausedSenders(database)).some(({ reason }) => reason?.includes(fault.title)),
  )
  const parked = sql.unsafe`select 1 from reports where state = 'parked'`
  await until('one is parked', () => database.exists(parked))
  await worker.stop()
  t.strictSame(own.leaks(), [])
})

t.test('finds every leak, but no mere common prefix', async (t) => {
  const own = createCanary()
  const log = watchedLog(own)
  own.contents(CONTENTS)
  own.secrets('canary-of-a-secret-7f31')
  log.debug({ subject: CONTENTS.subject })
  own.note({ where: 'a refusal', text: `${RECIPIENT} is busy`, own: RECIPIENT })
  log.info({ other: `x${RECIPIENT}` })
  t.strictSame(own.leaks(), [], 'debug may hold contents, a refusal what its call has sent')
  log.debug({ token: 'canary-of-a-secret-7f31' })
  log.info({ to: RECIPIENT })
  own.note({ where: 'a refusal', text: CONTENTS.html })
  await service.database.query(sql.unsafe`
    insert into pgboss.job (name, data)
    values ('deliver-email', ${JSON.stringify({ tag: CONTENTS.tags[0] })})`)
  await service.database.query(sql.unsafe`
    insert into counters (figure, labels, values) values ('x', ${JSON.stringify([CONTENTS.subject])}, array[1])`)
  await noteRest(service.url, own)
  await service.database.query(sql.unsafe`delete from counters where figure = 'x'`)
  await service.database.query(sql.unsafe`delete from pgboss.job where data ? 'tag'`)
  t.strictSame(
    own
      .leaks()
      .map((leak) => leak.slice(0, leak.indexOf(':')))
      .sort(),
    [
      ...['a secret in a log', 'contents in a job', 'contents in a log'],
      ...['contents in a refusal', 'contents in the metrics'],
    ],
  )
})

t.test('a leak fails the process of its test', async (t) => {
  const run = (text: string) => {
    const file = JSON.stringify(join(import.meta.dirname, 'support/canary.ts'))
    const script = `import { canary } from ${file}; canary.secrets('a secret of a test'); canary.note({ where: 'a log', text: '${text}' })`
    return spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  }
  t.equal(run('nothing of it').status, 0)
  const { status, stderr } = run('it was a secret of a test')
  t.equal(status, 1)
  t.match(stderr, 'leaked: a secret in a log')
})

t.test('files that share a process have separate contents', async (t) => {
  const own = createCanary()
  own.secrets('a secret of all files')
  own.contents({ subject: 'a subject of the first, 7f31' })
  own.note({ where: 'a log', text: 'a subject of the first, 7f31' })
  own.forget()
  own.note({ where: 'a job', text: 'a subject of the first, 7f31' })
  t.match(own.leaks(), [/^contents in a log: /])
  t.equal(own.leaks().length, 1, 'what the first put in is none of the second file’s contents')
  own.note({ where: 'a job', text: 'a secret of all files' })
  own.forget()
  t.match(own.leaks(), [/^contents in a log: /, /^a secret in a job: /])
})
