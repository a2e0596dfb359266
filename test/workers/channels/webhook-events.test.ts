/** Webhooks about sent WhatsApp messages and broadcasts, and the guide's functions that verify webhooks. */
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { foldStats } from '../../../db/stats/daily/fold.ts'
import { figuresSince } from '../../../db/stats/daily/stats.sql.ts'
import { magicNumbers } from '../../sandbox/whatsapp-magic.ts'
import { adminCli } from '../../support/admin.ts'
import { broadcastingOf, PUBLIC_URL } from '../../support/broadcasting.ts'
import { startCloud } from '../../support/cloud.ts'
import { signedIn } from '../../support/dashboard.ts'
import { verifiedDomain } from '../../support/domain.ts'
import type { Received } from '../../support/receiver.ts'
import { storeEmails } from '../../support/reports.ts'
import { anEmail, startService, WHATSAPP_APP_SECRET } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { VERIFIER_LANGUAGES, verifiedIn, verifierMissing } from '../../support/verifiers.ts'
import { beginWebhooks, happen } from '../../support/webhooks.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t, { publicUrl: PUBLIC_URL })
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
const begin = (t: Test, types = '*') => beginWebhooks(t, { service, cli }, { types })

const isOf = (type: string) => (one: Received) => one.body.type === type

t.test('webhooks report accepted, delivered, read and failed WhatsApp messages', async (t) => {
  const { team, receiver } = await begin(t)
  const cloud = await startCloud(t, {
    script: magicNumbers(),
    webhook: { url: `${service.base}/hooks/whatsapp`, app_secret: WHATSAPP_APP_SECRET },
  })
  await startWorker(t, service, { whatsapp: cloud.delivery })
  const { id: template_id } = await makeTemplate(service, team.id)
  const send = async (to: string, idempotency_key: string) =>
    (await sendWhatsapp(service, team, template_id, { to: [to], idempotency_key }))[0]
  const read = await send('+15555550102', 'read')
  const unreachable = await send('+15555550103', 'unreachable')
  const refused = await send('+15555550104', 'refused')
  const of = (id: string | undefined) => receiver.received.filter(({ body }) => body.data.message_id === id)
  await until('all of it has come', () => receiver.received.length >= 5)
  const ranks = of(read)
    .map(({ body }) => [body.data.rank, body.type])
    .sort()
  t.strictSame(ranks, [
    [1, 'whatsapp.sent'],
    [3, 'whatsapp.delivered'],
    [4, 'whatsapp.read'],
  ])
  t.match(of(unreachable), [
    { body: { type: 'whatsapp.failed', data: { idempotency_key: 'unreachable', detail: /131026/ } } },
  ])
  t.match(of(refused), [
    { body: { type: 'whatsapp.failed', data: { to: '+15555550104', template_id, detail: /131026/ } } },
  ])
  t.equal(receiver.received.length, 5, 'each once')
})

t.test("a customer's tag doesn't mark their email as ours", async (t) => {
  const { team, receiver } = await begin(t, 'email.sent,email.delivered')
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const broadcasting = await broadcastingOf(service, team)
  await broadcasting.contacts(['ana', 'ben'])
  const tags = ['heliograph:sign-in-link']
  const id = await broadcasting.create({ tags })
  t.equal((await broadcasting.post(id, 'send')).status, 202)
  const { body } = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ tags }) })
  await owner.post(`/teams/${team.id}/emails/${body.id}/resend`, { to: 'else@example.org' })
  await until('all of it has come', () => receiver.received.length === 4)
  const events = receiver.received.map((one) => [one.body.type, one.body.data.tags])
  t.strictSame(events, Array(4).fill(['email.sent', tags]))
  // A separate connection, because the API prepares its statement of that name differently.
  const rows = { database: await openDatabase(service.url, { size: 1 }) }
  t.teardown(() => rows.database.end())
  const [ours = ''] = await storeEmails(rows, team.id, [['login@example.org']], { internal: true })
  await happen(service, { team_id: team.id, email_id: ours, kind: 'delivered' })
  await happen(service, { team_id: team.id, email_id: body.id, kind: 'delivered' })
  await until('what is the customer’s has come', () => receiver.received.length === 5)
  t.match(receiver.received[4]?.body, { type: 'email.delivered', data: { email_id: body.id } })
  await foldStats(service.database)
  const days = await figuresSince(service.database, team.id, EMAIL, new Date(0))
  const total = days.reduce((sum, { count }) => sum + count, 0)
  t.equal(total, 4, 'a broadcast’s, a single one, its copy count')
})

t.test("endpoints get a broadcast's event with its stats", async (t) => {
  const { team, receiver, endpoint } = await begin(t, 'broadcast.started,broadcast.sent')
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const broadcasting = await broadcastingOf(service, team)
  await broadcasting.contacts(['ana', 'ben', 'cat'])
  const id = await broadcasting.create({ tags: ['spring'], idempotency_key: 'spring' })
  await cli.json(['webhook', 'set', team.id, endpoint.id, '--domain', 'example.com'])
  const { secrets } = service.deps
  const name = `${team.id}.test`
  await service.database.transaction((tx) => verifiedDomain({ tx, secrets, now: new Date() }, team.id, name))
  const add = ['webhook', 'add', team.id, '--url', receiver.url, '--types', '*']
  const other = await cli.json([...add, '--domain', name])
  t.equal((await broadcasting.post(id, 'send')).status, 202)
  await until('both have come', () => receiver.received.length === 2)
  const [sent] = receiver.received.filter(isOf('broadcast.sent'))
  t.match(sent?.body.data, {
    broadcast_id: id,
    name: 'Spring news',
    from: 'Acme <news@example.com>',
    subject: 'News for {{name}}',
    tags: ['spring'],
    idempotency_key: 'spring',
    audience: 3,
    stats: { made: 3, skipped: 0 },
    detail: /^$/,
  })
  t.match(receiver.received.find(isOf('broadcast.started'))?.body.data, { audience: 3, broadcast_id: id })
  t.strictSame(await cli.json(['webhook', 'messages', team.id, other.id]), [], 'it is of another domain')
})

for (const language of VERIFIER_LANGUAGES) {
  const missing = await verifierMissing(language)
  if (missing) t.comment(missing)
  else
    t.test(`the guide rejects forged and old webhooks: ${language}`, async (t) => {
      const { team, receiver, endpoint } = await begin(t)
      await cli.json(['webhook', 'rotate', team.id, endpoint.id])
      await startWorker(t, service)
      await cli.json(['webhook', 'test', team.id, endpoint.id])
      await until('it came', () => receiver.received.length === 1)
      const [one] = receiver.received
      if (!one) throw new Error('nothing came')
      const { secret } = endpoint
      const old = { ...one.headers, 'webhook-timestamp': '1700000000' }
      const results = await verifiedIn(
        language,
        [
          { ...one, secret },
          { ...one, secret, raw: `${one.raw} ` },
          { ...one, secret: `whsec_${Buffer.alloc(32).toString('base64')}` },
          { ...one, secret, headers: { ...one.headers, 'webhook-id': 'other' } },
          { ...one, secret, headers: old },
        ],
        t.testdir({}),
      )
      t.strictSame(results, ['valid', ...Array(3).fill('invalid signature'), 'too old'])
    })
}
