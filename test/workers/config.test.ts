// Settings of a worker: only the settings of its queues are required, and every error is named.

import type { Log } from '../../db/process/log.ts'
import { bulkProvider, emailProvider } from '../../workers/adapters.ts'
import { queuesOf, readWorkerSettings, settingsWarnings } from '../../workers/config.ts'
import { createSmtpProvider } from '../../workers/providers/smtp/adapter.ts'
import { WHATSAPP } from '../../workers/providers/whatsapp/declared.ts'
import { testDatabase } from '../support/database.ts'
import { faultLines } from '../support/environment.ts'
import { startSesApi } from '../support/ses-api.ts'
import t from '../support/tap.ts'
import { startProcess } from '../support/worker.ts'

const BASE = {
  DATABASE_URL: 'postgres://localhost/x',
  SECRET_KEY: 'a secret key for tests, thirty-two characters or more',
  SMTP_URL: 'smtp://localhost',
}
const { SMTP_URL: _relay, ...BARE } = BASE
const TOKEN = { WHATSAPP_ACCESS_TOKEN: 'x', WHATSAPP_PHONE_NUMBER_ID: '100000000000002' }
const OWN = ['deliver-whatsapp', 'deliver-whatsapp-parts', 'sync-whatsapp-templates']
const isWhatsapp = (job: string) => OWN.includes(job)

t.test('a worker needs the relay’s name, not its secret', async (t) => {
  t.equal(readWorkerSettings({ ...BASE, SMTP_RELAY: 'brevo' }).SMTP_RELAY, 'brevo')
  t.throws(() => readWorkerSettings({ ...BASE, SMTP_RELAY: 'Brevo' }), {
    message: /SMTP_RELAY must be one of mailgun, sendgrid, postmark, brevo/,
  })
})

t.test('without an access token a worker skips WhatsApp’s queues', async (t) => {
  const without = queuesOf(readWorkerSettings(BASE))
  t.notOk(without.some(isWhatsapp))
  t.ok(without.includes('deliver-email'))
  const all = queuesOf(readWorkerSettings({ ...BASE, ...TOKEN }))
  t.same(all.filter(isWhatsapp), OWN)
  const others = all.filter((job) => !isWhatsapp(job))
  t.same(others, without)
})

t.test('an incomplete set stops the worker, naming the missing setting', async (t) => {
  const { WHATSAPP_PHONE_NUMBER_ID: _, ...half } = TOKEN
  t.throws(() => readWorkerSettings({ ...BASE, ...half }), /WHATSAPP_PHONE_NUMBER_ID is missing/)
  const named = { ...BASE, WORKER_QUEUES: 'deliver-email, deliver-whatsapp' }
  t.throws(() => readWorkerSettings(named), /WHATSAPP_ACCESS_TOKEN is missing/)
  const queues = queuesOf(readWorkerSettings({ ...named, ...TOKEN }))
  t.same(queues, ['deliver-email', 'deliver-whatsapp', 'deliver-whatsapp-parts', 'check-email'])
  t.throws(
    () => readWorkerSettings({ ...BASE, WHATSAPP_API_URL: 'graph.facebook.com' }),
    /WHATSAPP_API_URL must be/,
  )
})

t.test('a token unfit for a header stops a worker', async (t) => {
  // With such a token, each message would count as possibly delivered, although none was sent.
  for (const WHATSAPP_ACCESS_TOKEN of ['token\n', ' token', 'tökén'])
    t.match(faults({ ...BASE, ...TOKEN, WHATSAPP_ACCESS_TOKEN }), [
      /^WHATSAPP_ACCESS_TOKEN must be printable ASCII/,
    ])
  t.match(faults({ ...BASE, WHATSAPP_API_URL: 'https://' }), [/^WHATSAPP_API_URL must be/])
  t.match(faults({ ...BASE, SES_ENDPOINT: 'http://' }), [/^SES_ENDPOINT must be an http/])
})

t.test('defaults to Meta’s API and 80 messages a second', async (t) => {
  t.match(readWorkerSettings({ ...BASE, ...TOKEN }), {
    WHATSAPP_API_URL: 'https://graph.facebook.com',
    WHATSAPP_API_VERSION: /^v\d+\.\d+$/,
    WHATSAPP_MESSAGES_PER_SECOND: 80,
  })
})

/** Returns the lines about settings that a worker stops with; none if it starts. */
const faults = (env: Record<string, string>) => faultLines(() => readWorkerSettings(env))

t.test('an email worker reports all missing settings at once', async (t) => {
  t.match(faults({}), [/DATABASE_URL is missing/, /SECRET_KEY is missing/, /SMTP_URL is missing/])
  t.match(faults(BARE), [/^SMTP_URL is missing/])
  t.match(faults({ ...BARE, WORKER_QUEUES: 'ingest-report, deliver-email' }), [/^SMTP_URL is missing/])
  t.match(faults({ ...BARE, EMAIL_PROVIDER: 'ses' }), [/^AWS_REGION is missing/])
  t.same(faults({ ...BARE, EMAIL_PROVIDER: 'ses', AWS_REGION: 'eu-west-1' }), [])
  const wrong = {
    EMAIL_PROVIDER: 'pigeon',
    SMTP_URL: 'localhost:25',
    AWS_REGION: 'Ireland',
    SES_ENDPOINT: 'aws',
    SES_CONFIGURATION_SET: 'a b',
    RETURN_PATH_DOMAIN: 'not a domain',
    SMTP_EHLO_NAME: 'not a name',
    SMTP_DELIVERED: 'yes',
    WORKER_QUEUES: 'deliver-mail',
    WORKER_CONCURRENCY: '0',
  }
  const names = faults({ ...BASE, ...wrong })
    .map((line) => line.split(' ')[0])
    .sort()
  t.same(names, Object.keys(wrong).sort())
})

t.test('an invalid relay URL stops a worker without being repeated', async (t) => {
  for (const url of [
    ...['smtp://', 'smtp://h:99999', 'smtp:h', 'http://h', 'smtps://:25', 'smtp://u:hunter2@'],
    ...['smtp://u:hunter2@ss/w@h:587', 'smtp://h/hunter2', 'smtp://u:1@h#hunter2@h', 'smtp://h#'],
    ...['smtp://AKIA:abc/hunter2@h:587', 'smtp://u:2525/hunter2@h'],
  ]) {
    for (const name of ['SMTP_URL', 'BULK_SMTP_URL']) {
      const lines = faults({ ...BASE, [name]: url })
      t.match(
        lines,
        [new RegExp(`^${name} must be .* Percent-encode characters such as @ / # \\? % in the password$`)],
        url,
      )
      t.notMatch(lines.join(), 'hunter2')
    }
    t.throws(() => createSmtpProvider({ url, max_connections: 1 }), /SMTP_URL must be/, url)
  }
  for (const url of [
    'smtp://h',
    'smtp://h/',
    'smtp://u:p%2Fp%23@relay.example.com',
    'smtps://u:p%40@h:465?requireTLS=true',
    'smtp://[::1]:25',
  ]) {
    t.same(faults({ ...BASE, SMTP_URL: url }), [])
    await createSmtpProvider({ url, max_connections: 1 }).close()
  }
})

t.test('a login at a private address requires a TLS option', (t) => {
  for (const name of ['SMTP_URL', 'BULK_SMTP_URL']) {
    const lines = faults({ ...BASE, [name]: 'smtp://u:hunter2@postfix:25' })
    t.match(lines, [new RegExp(`^${name} .*requireTLS`)])
    t.equal(lines.length, 1)
    t.notMatch(lines.join(), 'hunter2')
  }
  t.end()
})

t.test('an unknown option of SMTP_URL stops a worker', async (t) => {
  const said = (query: string): string[] =>
    faults({ ...BASE, SMTP_URL: `smtp://u:hunter2@relay.example.com?${query}` })
  t.strictSame(said('requireTls=true'), [
    'SMTP_URL has an unknown option requireTls: did you mean requireTLS?',
  ])
  t.match(said('require_tls=true'), [
    /^SMTP_URL has an unknown option require_tls: it must be one of secure, requireTLS, /,
  ])
  for (const value of ['1', 'yes', ''])
    t.strictSame(said(`requireTLS=${value}`), [
      'SMTP_URL has an option requireTLS that must be true or false',
    ])
  t.strictSame(said('maxConnections=many'), ['SMTP_URL has an option maxConnections that must be a number'])
  t.notMatch(said('hunter2/@x=1').join(), /hunter2/)
  t.strictSame(
    said('requireTLS=true&tls.rejectUnauthorized=false&tls.servername=mail.example.com&name=a.test'),
    [],
  )
})

t.test('queues that this worker can’t work on are rejected', async (t) => {
  t.match(faults({ ...BASE, WORKER_QUEUES: ',' }), [
    /^WORKER_QUEUES must only contain queues from this list: /,
  ])
  for (const WORKER_QUEUES of ['check-email', 'ingest-report,check-email'])
    t.match(faults({ ...BASE, WORKER_QUEUES }), [/^WORKER_QUEUES contains check-email without deliver-email/])
  t.strictSame(faults({ ...BASE, WORKER_QUEUES: 'check-email,deliver-email' }), [])
})

t.test('uncollected bounces cause a warning', async (t) => {
  const warnings = (env: Record<string, string>) =>
    settingsWarnings(readWorkerSettings({ ...BASE, ...env }), env)
  t.match(warnings({}), [/^RETURN_PATH_DOMAIN is not set, so bounces go to /])
  t.strictSame(warnings({ RETURN_PATH_DOMAIN: 'bounces.example.com' }), [])
  t.strictSame(warnings({ WORKER_QUEUES: 'ingest-report' }), [])
  t.match(warnings({ WORKER_QUEUES: 'ingest-report', WHATSAPP_ACESS_TOKEN: 'x' }), [
    /^WHATSAPP_ACESS_TOKEN is not a setting. Did you mean WHATSAPP_ACCESS_TOKEN\?$/,
  ])
  t.strictSame(warnings({ EMAIL_PROVIDER: 'ses', AWS_REGION: 'eu-west-1' }), [])
})

t.test('a worker without email needs no relay or region', async (t) => {
  const { url } = await testDatabase(t)
  for (const EMAIL_PROVIDER of ['smtp', 'ses']) {
    const env = { ...BARE, DATABASE_URL: url, EMAIL_PROVIDER, WORKER_QUEUES: 'ingest-report' }
    t.same(queuesOf(readWorkerSettings(env)), ['ingest-report'])
    const { kill, exited } = await startProcess(t, 'workers/main.ts', env)
    kill('SIGTERM')
    t.equal(await exited, 0)
  }
  t.match(faults({ ...BARE, WORKER_QUEUES: 'ingest-report', SMTP_URL: 'smtp://' }), [/^SMTP_URL must be/])
})

t.test('broadcasts have their own sender', async (t) => {
  const senderOf = async (settings: Record<string, string>) => {
    const read = readWorkerSettings({ ...BASE, ...settings })
    const single = await emailProvider(read, { warn() {} } as unknown as Log)
    const bulk = await bulkProvider(read, single)
    t.teardown(() => Promise.all([single.close(), bulk.close()]))
    return { single: await single.sender(), bulk: await bulk.sender() }
  }
  const relay = await senderOf({})
  t.match(relay, { single: { key: 'smtp:localhost' }, bulk: { key: 'smtp:localhost:bulk', on_demand: true } })
  const bounded = await senderOf({ BULK_SENDS_PER_SECOND: '7' })
  t.match(bounded.single, { on_demand: true })
  t.same(bounded.bulk, { key: 'smtp:localhost:bulk', ceiling: 7 })
  const own = await senderOf({ BULK_SMTP_URL: 'smtp://bulk.test' })
  t.match(own, { single: { key: 'smtp:localhost' }, bulk: { key: 'smtp:bulk.test:bulk', on_demand: true } })
  const { url } = await startSesApi(t, { account: () => 50 })
  const ses = await senderOf({ EMAIL_PROVIDER: 'ses', AWS_REGION: 'eu-west-1', SES_ENDPOINT: url })
  t.match(ses, { single: { ceiling: 45 }, bulk: { key: 'ses:eu-west-1:bulk', ceiling: 22.5 } })
  t.throws(() => readWorkerSettings({ ...BASE, BULK_SMTP_URL: 'bulk.test' }), /BULK_SMTP_URL/)
})

t.test('pauses by default above 5 % bounces, 0.1 % complaints', async (t) => {
  const set = { BULK_MAX_BOUNCE_PERCENT: '2.5', BULK_MAX_COMPLAINT_PERCENT: '0.05' }
  t.match(readWorkerSettings(BASE), { BULK_MAX_BOUNCE_PERCENT: 5, BULK_MAX_COMPLAINT_PERCENT: 0.1 })
  t.match(readWorkerSettings({ ...BASE, ...set }), {
    BULK_MAX_BOUNCE_PERCENT: 2.5,
    BULK_MAX_COMPLAINT_PERCENT: 0.05,
  })
  for (const percent of ['0', '-1', '101', 'none'])
    t.throws(
      () => readWorkerSettings({ ...BASE, BULK_MAX_BOUNCE_PERCENT: percent }),
      /BULK_MAX_BOUNCE_PERCENT must be a percentage/,
    )
})

t.test('appends the Graph version unless the URL has one', async (t) => {
  const keyOf = (changes: object) => {
    const settings = readWorkerSettings({ ...BASE, ...TOKEN, ...changes })
    return WHATSAPP.warning(settings, new Date('2027-05-01'))
  }
  t.match(keyOf({ WHATSAPP_API_VERSION: 'v23.0' }), /v23\.0 .* 2027-10-08.*WHATSAPP_API_VERSION/)
  t.match(keyOf({ WHATSAPP_API_URL: 'https://graph.example/v22.0' }), /v22\.0 .* 2027-05-29/)
  t.equal(keyOf({}), null)
  t.equal(
    WHATSAPP.warning(
      readWorkerSettings({ ...BASE, ...TOKEN, WHATSAPP_API_VERSION: 'v23.0' }),
      new Date('2027-04-01'),
    ),
    null,
  )
  t.throws(() => readWorkerSettings({ ...BASE, WHATSAPP_API_VERSION: '26' }), /WHATSAPP_API_VERSION must be/)
  t.throws(
    () => readWorkerSettings({ ...BASE, WHATSAPP_STOP_WORDS: 'fin, Cancel' }),
    /WHATSAPP_STOP_WORDS .*CANCEL/,
  )
})
