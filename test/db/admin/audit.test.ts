/** Every verb of the CLI that changes something writes an audit entry, in the transaction of the change. */
import { entryLabel } from '../../../api/dashboard/components/action-labels.ts'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { setBulkPaused } from '../../../db/accounts/teams/reputation.sql.ts'
import { endReports } from '../../../db/delivery/reports/reports.sql.ts'
import { storeReports } from '../../../db/delivery/reports/store.ts'
import { insertBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { idNow } from '../../../db/process/ids.ts'
import { startWhatsappSandbox } from '../../sandbox/whatsapp.ts'
import { adminCli } from '../../support/admin.ts'
import { startCloud } from '../../support/cloud.ts'
import { report } from '../../support/contacts.ts'
import { startDns } from '../../support/dns.ts'
import { storeContact, storedReports } from '../../support/reports.ts'
import { pauseSender } from '../../support/senders.ts'
import { anEmail, makeKey, makeTeam, startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { aMessage, aTemplate, makeTemplate } from '../../support/whatsapp.ts'
import { startWorker } from '../../support/worker.ts'

/** Verbs that change nothing. */
const READS = `
  team list, team show, domain list, key list, session list, contact list, contact show, template list, template show,
  topic list, webhook list, webhook show, webhook messages, webhook message, broadcast list, broadcast show, broadcast skips, email file, whatsapp list, whatsapp show, whatsapp-template list, plan list, email list, email find, email show,
  report list, report show, member list, audit list, queue status, queue reasons, sender list, job list, job show, suppression list, suppression show,
  number list, number show, whatsapp opt-outs, whatsapp-template show, whatsapp-template available`
  .split(',')
  .map((verb) => verb.trim())

const service = await startService(t)
const { database } = service
const dns = await startDns(t)
const TOKEN = 'EAA-token-of-acme'
const shop = { id: '901', display_phone_number: '+1 555-555-0901', verified_name: 'Acme' }
const sandbox = await startWhatsappSandbox({
  ...{
    port: 0,
    accounts: [{ id: '900', token: TOKEN, app_id: '77', subscribed: false, numbers: [shop], templates: [] }],
  },
})
t.teardown(() => sandbox.close())
const cli = adminCli({
  ...{ DATABASE_URL: service.url, DNS_SERVER: dns.address, PUBLIC_URL: 'https://mail.example.com' },
  ...{ WEBHOOK_ALLOW: '127.0.0.0/8', WHATSAPP_API_URL: sandbox.url },
})

/** Returns the nouns, or the verbs of a noun, from --help. */
async function commandsOf(...noun: string[]): Promise<string[]> {
  const { stdout } = await cli.run([...noun, '--help'])
  const [, list = ''] = stdout.split(/^Commands:\n/m)
  const names = [...list.matchAll(/^ {2}([a-z0-9-]+)/gm)].map(([, name]) => name ?? '')
  return names.filter((name) => name !== 'help')
}

const world = await (async () => {
  const { id: team, key } = await makeTeam(service)
  const post = async (path: string, body: unknown) => (await service.call('POST', path, { key, body })).body
  const { id: whatsappTemplate } = await makeTemplate(service, team)
  const [gone, stays] = [await post('/v1/emails', anEmail()), await post('/v1/emails', anEmail())]
  await post('/v1/whatsapp/messages', aMessage(whatsappTemplate))
  await storeContact(service, team, 'ana@example.org')
  await storeContact(service, team, 'bob@example.org')
  await report(service, { id: team }, 'bob@example.org', 'bounced')
  return { team, key, whatsappTemplate, gone, stays }
})()
const { team } = world

const UUID = /^[0-9a-f-]{36}$/
const html = { input: '<p>Hello {{name}}</p>' }
type Change = {
  args: readonly string[]
  input?: string
  action?: string
  subject?: string | RegExp
  detail?: string | RegExp
}

/** The verbs of webhooks, in an order in which each can run. */
async function* webhookChanges(): AsyncGenerator<Change> {
  const url = 'http://127.0.0.1:9/'
  yield { args: ['webhook', 'add', team, '--url', url] }
  const [{ id: subject }] = await cli.json(['webhook', 'list', team])
  yield { args: ['webhook', 'set', team, subject, '--name', 'Billing'], subject }
  for (const verb of ['rotate', 'test', 'replay']) yield { args: ['webhook', verb, team, subject], subject }
  const [{ id: message }] = await cli.json(['webhook', 'messages', team, subject])
  yield { args: ['webhook', 'requeue', team, message], subject: message }
  for (const verb of ['disable', 'enable', 'remove'])
    yield { args: ['webhook', verb, team, subject], subject }
}

/** The verbs of broadcasts, for one with a single recipient, from draft to cancelled. */
async function* broadcastChanges(): AsyncGenerator<Change> {
  const { id: topic_id } = await cli.json(['topic', 'create', team, '--name', 'Spring'])
  const body = { email: 'cat@example.org', topic_ids: [topic_id] }
  await service.call('POST', '/v1/contacts', { key: world.key, body })
  const page = { input: '<a href="{{unsubscribe_url}}">no more</a>' }
  const made = ['template', 'create', team, '--name', 'Spring', '--html', '-']
  const { id: template_id } = await cli.json(made, page)
  const mail = { name: 'Spring', template_id, from: 'hello@example.com', subject: 'S', topic_ids: [topic_id] }
  const file = ['--file', '-']
  yield {
    args: ['broadcast', 'create', team, ...file],
    input: JSON.stringify(mail),
    subject: 'Spring',
    detail: UUID,
  }
  const [{ id }] = await cli.json(['broadcast', 'list', team])
  const renamed = { input: '{"name":"May"}', subject: 'May', detail: id }
  yield { args: ['broadcast', 'update', team, id, ...file], ...renamed }
  yield {
    args: ['broadcast', 'test', team, id, '--to', 'a@example.org'],
    subject: id,
    detail: 'a@example.org',
  }
  for (const verb of ['start', 'pause', 'resume', 'cancel'])
    yield { args: ['broadcast', verb, team, id], subject: 'May', detail: id }
}

/** The verbs of scheduled messages. */
async function* scheduledChanges(): AsyncGenerator<Change> {
  const day = 86_400_000
  const scheduled_at = new Date(Date.now() + day).toISOString()
  const later = new Date(Date.now() + 2 * day).toISOString()
  // The first key of the world has been revoked.
  const key = await makeKey(service, team)
  const sends = {
    email: ['/v1/emails', anEmail({ scheduled_at })],
    whatsapp: ['/v1/whatsapp/messages', { ...aMessage(world.whatsappTemplate), scheduled_at }],
  } as const
  for (const [noun, [path, sent]] of Object.entries(sends)) {
    const { body } = await service.call('POST', path, { key, body: sent })
    const id = body.id ?? body.data[0].id
    yield { args: [noun, 'reschedule', team, id, '--at', later], subject: id, detail: later }
    yield { args: [noun, 'cancel', team, id], subject: id }
  }
}

/** The verbs that change WhatsApp numbers, or the number of a team. */
async function* numberChanges(): AsyncGenerator<Change> {
  const { id: owner } = await makeTeam(service)
  const ids = ['--phone-number-id', '901', '--account-id', '900']
  const subject = 'acme'
  yield { args: ['number', 'add', 'acme', ...ids], input: TOKEN, subject, detail: '901' }
  const rate = ['--messages-per-second', '40']
  yield { args: ['number', 'set', 'acme', ...rate], subject, detail: 'messages per second' }
  yield { args: ['number', 'check', 'acme', '--subscribe'], action: 'number.subscribe', subject }
  for (const verb of ['pause', 'resume']) yield { args: ['number', verb, 'acme'], subject }
  yield { args: ['team', 'number', owner, 'acme'], subject }
  yield { args: ['team', 'number', owner, 'default'], subject: 'default', detail: 'acme' }
  yield { args: ['number', 'remove', 'acme'], subject, detail: '901' }
  for (const verb of ['opt-out', 'opt-in'])
    yield { args: ['whatsapp', verb, owner, '+15551234567'], subject: '+15551234567' }
}

/** A call of each verb that changes something, in an order in which each can run. */
async function* changes(): AsyncGenerator<Change> {
  yield { args: ['team', 'create', '--name', 'Another'], subject: 'Another', detail: 'free' }
  const figures = ['--emails', '7000', '--rate', 'plan', '--storage', '2']
  const detail = 'email_limit 7000, send_rate_per_second plan, storage_gb 2'
  yield { args: ['team', 'plan', team, '--plan', 'pro', ...figures], subject: 'pro', detail }
  yield { args: ['team', 'rename', team, '--name', 'Renamed'], subject: 'Renamed' }
  yield { args: ['team', 'set', team, '--suppress-transactional', 'nothing'], subject: 'Renamed' }
  yield { args: ['team', 'suspend', team] }
  yield { args: ['team', 'resume', team] }
  const pause = { reason: 'team_bounces', sent: 100, count: 12, limit: 10 } as const
  await database.transaction((tx) => setBulkPaused(tx, team, pause))
  const resumed = { action: 'team.resume_bulk', subject: 'Renamed', detail: 'team_bounces' }
  yield { args: ['team', 'resume-bulk', team], ...resumed }
  yield { args: ['domain', 'add', team, 'fresh.test'], subject: 'fresh.test' }
  const listed: { name: string; dns_records: { name: string; value: string }[] }[] = await cli.json([
    'domain',
    'list',
    team,
  ])
  const [record] = listed.find(({ name }) => name === 'fresh.test')?.dns_records ?? []
  dns.records.set(record?.name ?? '', [record?.value.match(/.{1,255}/gs) ?? []])
  yield { args: ['domain', 'verify', team, 'fresh.test'], subject: 'fresh.test' }
  yield { args: ['domain', 'rekey', team, 'fresh.test'], subject: 'fresh.test' }
  yield { args: ['domain', 'ramp', team, 'fresh.test', '100'], subject: 'fresh.test', detail: '100' }
  for (const verb of ['ed25519', 'return-path']) {
    const detail = verb === 'ed25519' ? 'on' : 'off'
    yield { args: ['domain', verb, team, 'fresh.test', detail], subject: 'fresh.test', detail }
  }
  yield { args: ['domain', 'remove', team, 'fresh.test'], subject: 'fresh.test' }
  yield* broadcastChanges()
  yield { args: ['key', 'create', team, '--name', 'New', '--scopes', 'emails:send'], subject: 'New' }
  const [{ id: key }] = await cli.json(['key', 'list', team])
  yield { args: ['key', 'rotate', team, key] }
  yield { args: ['key', 'revoke', team, key] }
  const fay = ['--user', 'fay@example.org']
  yield { args: ['session', 'create', team, ...fay], subject: UUID, detail: 'fay@example.org' }
  yield { args: ['session', 'revoke', team, '--all'], subject: 'all', detail: '1 ended' }
  yield { args: ['template', 'create', team, '--name', 'Hello', '--html', '-'], ...html, subject: 'Hello' }
  const [{ id: template }] = await cli.json(['template', 'list', team])
  const changed = { input: '<p>Bye {{name}}</p>', subject: template }
  yield { args: ['template', 'update', team, template, '--html', '-'], ...changed }
  yield { args: ['template', 'delete', team, template], subject: template }
  yield { args: ['topic', 'create', team, '--name', 'News'], subject: 'News' }
  const [{ id: topic }] = await cli.json(['topic', 'list', team])
  yield { args: ['topic', 'delete', team, topic], subject: topic }
  yield* webhookChanges()
  const bob = 'bob@example.org'
  yield { args: ['contact', 'lift', team, bob, '--reason', 'he asked'], subject: bob }
  const byHand = ['--as', 'complained', '--reason', 'by post']
  yield { args: ['contact', 'suppress', team, 'never@example.org', ...byHand], subject: 'never@example.org' }
  const other = 'other@example.org'
  const added = ['--cause', 'manual', '--reason', 'asked by phone']
  yield { args: ['suppression', 'add', team, other, ...added], subject: other }
  yield { args: ['suppression', 'lift', team, other, '--reason', 'asked again'], subject: other }
  yield { args: ['contact', 'export', team, 'ana@example.org'], subject: /^[0-9a-f]{64}$/ }
  yield { args: ['contact', 'erase', team, 'ana@example.org'], subject: /^[0-9a-f]{64}$/ }
  yield* scheduledChanges()
  yield* numberChanges()
  const forced = { subject: world.stays.id, detail: 'status: queued' }
  yield { args: ['email', 'requeue', team, world.stays.id, '--status', 'queued', '--force'], ...forced }
  yield { args: ['email', 'delete', team, world.gone.id], subject: world.gone.id }
  yield { args: ['whatsapp', 'requeue', team, '--status', 'queued'], subject: '1 WhatsApp message' }
  const definition = JSON.stringify(aTemplate({}, { name: 'made' }))
  yield {
    args: ['whatsapp-template', 'create', team, '--file', '-'],
    input: definition,
    subject: 'made',
    detail: UUID,
  }
  yield { args: ['whatsapp-template', 'status', team, world.whatsappTemplate, 'paused'], detail: 'paused' }
  const catalog = JSON.stringify(await cli.json(['plan', 'list']))
  yield { args: ['plan', 'load', '-'], input: catalog, subject: 'catalog', detail: /\bfree, pro\b/ }
  const now = new Date()
  const parked = async (event_key: string): Promise<string> => {
    await database.transaction((tx) =>
      storeReports({ tx, queue: service.deps.queue }, [
        { provider: 'smtp', event_key, body: Buffer.from('x'), received_at: now },
      ]),
    )
    const id = (await storedReports(service)).at(-1)?.id ?? ''
    await endReports(database, [{ id, state: 'parked', reason: 'unreadable' }])
    return id
  }
  const one = await parked('one')
  yield { args: ['report', 'replay', one], subject: one }
  await parked('two')
  yield {
    args: ['report', 'drop', '--parked', '--reason', 'unread'],
    subject: 'parked',
    detail: 'reason: unread',
  }
  yield { args: ['login', 'op@example.org', '--operator'], action: 'login.link' }
  yield { args: ['member', 'add', team, 'eve@example.org', '--role', 'viewer'] }
  yield { args: ['member', 'remove', team, 'eve@example.org'] }
  yield { args: ['secret', 'reseal'], subject: /^\d+ domains, \d+ webhooks$/ }
  yield { args: ['queue', 'pause', 'ingest-report'], subject: 'ingest-report' }
  yield { args: ['queue', 'resume', 'ingest-report'], subject: 'ingest-report' }
  yield { args: ['queue', 'redrive', 'ingest-report'], subject: 'ingest-report' }
  await database.transaction((tx) => pauseSender(tx, { key: 'smtp:relay.test', ceiling: 10 }, 60, 'no'))
  yield { args: ['sender', 'resume', 'smtp:relay.test'], subject: 'smtp:relay.test' }
  const job = { id: idNow(), team_id: team, kind: 'email.delete', given: {}, begun_by: 'cli', total: 7 }
  await insertBackgroundJob(database, job, now)
  yield { args: ['job', 'stop', job.id], subject: 'email.delete', detail: '0 of 7' }
  const components = [{ type: 'BODY', text: 'Thank you' }]
  const receipt = {
    id: '7',
    name: 'receipt',
    language: 'en',
    status: 'APPROVED',
    category: 'UTILITY',
    components,
  }
  const cloud = await startCloud(t, { templates: [receipt] })
  const relay = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: relay.url, whatsapp: cloud.delivery })
  yield { args: ['whatsapp-template', 'sync', team], subject: 'Renamed', detail: UUID }
  yield {
    args: ['whatsapp-template', 'add', team, 'receipt', '--language', 'en'],
    subject: 'receipt',
    detail: 'en',
  }
  yield { args: ['sender', 'check'] }
}

t.test('every verb that changes something writes an audit entry', async (t) => {
  const tried = new Set<string>()
  const known = new Set<string>()
  const news = async () => {
    const lines = (await auditEntries(database, { limit: 5 })).filter(({ id }) => !known.has(id))
    for (const { id } of lines) known.add(id)
    return lines
  }
  for await (const { args, input = '', action, subject = /./, detail = /^/ } of changes()) {
    const verb = args[0] === 'login' ? 'login' : args.slice(0, 2).join(' ')
    await news()
    await cli.json(args, { input })
    const recorded = (await news()).filter((line) => line.action === (action ?? verb.replace(' ', '.')))
    t.match(recorded, [{ actor: 'cli', subject, detail }], verb)
    tried.add(verb)
  }
  const verbs: string[] = []
  // Sequential, because concurrent calls each get a process (test/support/admin.ts).
  for (const noun of await commandsOf()) {
    const own = await commandsOf(noun)
    verbs.push(...(own.length === 0 ? [noun] : own.map((verb) => `${noun} ${verb}`)))
  }
  t.strictSame(verbs.sort(), [...READS, ...tried].sort(), 'no verb is forgotten here')
  const actions = (await auditEntries(database, { limit: 1_000 })).map((entry) => entry.action)
  const toLabel = (action: string) => entryLabel({ action, detail: '' }, undefined)
  t.equal([...new Set(actions)].filter((one) => toLabel(one) === one).join(), '', 'each has its words')
  t.equal(new Set(actions.map(toLabel)).size, new Set(actions).size, 'by which the filter finds it')
})

t.test('dry runs and rejected verbs write no audit entry', async (t) => {
  const lines = async () => (await auditEntries(database, { limit: 1_000 })).length
  const before = await lines()
  await cli.json(['email', 'requeue', team, '--status', 'queued', '--dry-run'])
  await cli.json(['email', 'requeue', team, '--status', 'bounced', '--force'])
  await cli.fault(['domain', 'remove', team, 'nobody.test'])
  const made = await cli.json(['template', 'create', team, '--name', 'Same', '--html', '-'], html)
  const same = await cli.json(['template', 'update', team, made.id, '--html', '-'], html)
  t.equal(same.version_id, made.version_id)
  await cli.run(['domain', 'verify', team, 'example.com'])
  t.equal(await lines(), before + 1, 'the template that was created')
})

t.test("the audit log doesn't contain an erased contact's address", async (t) => {
  t.notMatch(JSON.stringify(await auditEntries(database, { limit: 1_000 })), /ana@example/)
})
