/**
 * Webhooks about emails, WhatsApp messages and contacts, and their endpoints. With real workers and a
 * receiver that uses the reference library.
 */
import { sql } from 'slonik'
import { applyEmailEvents } from '../../../db/messages/emails/apply-events.ts'
import { applyWhatsappEvents } from '../../../db/messages/whatsapp/apply-events.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { verifiedDomain } from '../../support/domain.ts'
import { EMPTY } from '../../support/empty.ts'
import { isVerified, startReceiver } from '../../support/receiver.ts'
import { eventsOf, storeContact, storeEmails } from '../../support/reports.ts'
import { ageByADay, jobStates, setJobsDue } from '../../support/rows.ts'
import { anEmail, sendEmail } from '../../support/service.ts'
import { startSmtpScript } from '../../support/smtp-script.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import { statementsOf } from '../../support/statement-count.ts'
import t from '../../support/tap.ts'
import { anEvent, happen, startWebhooks } from '../../support/webhooks.ts'
import { makeTemplate, numbers, sendWhatsapp } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, rows, cli, begin } = await startWebhooks(t)

t.test("each endpoint gets a sent email's event, signed", async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  t.match(endpoint, {
    url: receiver.url,
    types: ['*'],
    state: 'enabled',
    secret: /^whsec_[A-Za-z0-9+/]{43}=$/,
  })
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const body = anEmail({ tags: ['welcome'], idempotency_key: 'k-1' })
  const { body: sent } = await service.call('POST', '/v1/emails', { key: team.key, body })
  await until('it came', () => receiver.received.length > 0)
  const [one] = receiver.received
  if (!one) throw new Error('nothing came')
  t.ok(isVerified(one, endpoint.secret))
  t.notOk(isVerified(one, `whsec_${Buffer.alloc(32).toString('base64')}`))
  t.match(one.headers, { 'content-type': 'application/json' })
  t.strictSame(Object.keys(one.body), ['type', 'timestamp', 'data'])
  t.match(one.body, {
    type: 'email.sent',
    timestamp: /^\d{4}-.*Z$/,
    data: {
      email_id: sent.id,
      from: 'Acme <hello@example.com>',
      to: ['someone@example.org'],
      recipient: 'someone@example.org',
      subject: 'Hello',
      tags: ['welcome'],
      template_id: null,
      idempotency_key: 'k-1',
      rank: 1,
      detail: String,
    },
  })
  await until('it is recorded', async () => (await show()).last_success_at !== null)
  const shown = await show()
  t.match(shown, { backlog: 0, failing_since: null, state: 'enabled' })
  t.match(shown.attempts, [{ event_id: one.id, type: 'email.sent', status: 204, ms: Number, response: /^$/ }])
  t.notMatch(JSON.stringify(await cli.json(['webhook', 'list', team.id])), /whsec_/)
})

t.test('reports contact changes and the first delay once', async (t) => {
  const { team, receiver } = await begin(t)
  await startWorker(t, service)
  await storeContact(service, team.id, 'Ana@example.org')
  for (const verb of ['unsubscribe', 'unsubscribe', 'resubscribe'])
    await service.call('POST', `/v1/contacts/ana@example.org/${verb}`, { key: team.key, body: {} })
  const [id = ''] = await storeEmails(rows, team.id, [['ana@example.org']])
  const email = { team_id: team.id, email_id: id }
  await happen(service, { ...email, kind: 'deferred', event_key: '1' })
  await happen(service, { ...email, kind: 'delayed' })
  await happen(service, { ...email, kind: 'deferred', event_key: '3' })
  await happen(service, { ...email, kind: 'bounced', detail: 'no such user', effect: 'hard' })
  await cli.json(['contact', 'lift', team.id, 'ana@example.org', '--reason', 'they wrote to us'])
  await until('all came', () => receiver.received.length >= 6)
  const bodies = receiver.received.map(({ body }) => body)
  t.strictSame(bodies.map(({ type }) => type).sort(), [
    ...'contact.released contact.resubscribed contact.suppressed contact.unsubscribed'.split(' '),
    ...'email.bounced email.delivery_delayed'.split(' '),
  ])
  t.match(
    bodies.find(({ type }) => type === 'contact.suppressed'),
    {
      data: {
        ...{ contact_id: String, email: 'Ana@example.org', suppression: 'bounced' },
        ...{ cause: 'bounce', email_id: id, detail: 'no such user' },
      },
    },
  )
})

t.test('left topics are reported, and an email names its broadcast', async (t) => {
  const { team, receiver } = await begin(t, { types: 'contact.topics_left,email.sent' })
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const broadcast = await aBroadcast(service, team)
  const [email_id] = await broadcast.emails('ana@example.org')
  const single = await sendEmail(service, team)
  const left = { email: 'ana@example.org', topic_ids: [broadcast.topic] }
  await service.call('POST', '/v1/marketing/unsubscribe', { key: team.key, body: left })
  await until('all came', () => receiver.received.length >= 3)
  const data = (type: string) =>
    receiver.received.flatMap(({ body }) => (body.type === type ? [body.data] : []))
  t.match(data('contact.topics_left'), [
    { contact_id: String, email: 'ana@example.org', status: 'subscribed', topic_ids: [broadcast.topic] },
  ])
  const of = new Map(data('email.sent').map((each) => [each.email_id, each.broadcast_id]))
  t.strictSame([of.get(email_id), of.get(single)], [broadcast.id, null])
})

t.test('reports an email deferred for a day as bounced', async (t) => {
  const { team, receiver } = await begin(t, { types: 'email.bounced,email.failed' })
  const script = await startSmtpScript(t, (step) => (step === 'rcpt' ? '451 4.2.1 not now' : undefined))
  const sent = await sendEmail(service, team)
  await startWorker(t, service, { smtp_url: script.url })
  await until('it is put off', async () => (await eventsOf(service, sent)).length > 0)
  await until('its job waits', async () => (await jobStates(service, sent))[0] === 'retry')
  await ageByADay(service, sent)
  await setJobsDue(service, sent)
  await until('it came', () => receiver.received.length > 0)
  t.match(receiver.received[0]?.body, {
    type: 'email.bounced',
    data: { email_id: sent, recipient: /@/, rank: 5, detail: /^4\.4\.7 .*451 4\.2\.1 not now/ },
  })
})

t.test('a domain’s endpoint only gets events of its emails', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  const { secrets } = service.deps
  const other = await service.database.transaction((tx) =>
    verifiedDomain({ tx, secrets, now: new Date() }, team.id, `${team.id}.test`),
  )
  await cli.json(['webhook', 'set', team.id, endpoint.id, '--domain', other.name])
  await storeContact(service, team.id, 'ana@example.org')
  await service.call('POST', '/v1/contacts/ana@example.org/unsubscribe', { key: team.key, body: {} })
  const [foreign = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  const [own = ''] = await storeEmails(rows, team.id, [['a@example.org']], {
    from_address: `Acme <hello@${other.name}>`,
  })
  for (const email_id of [foreign, own])
    await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
  await startWorker(t, service)
  await until(
    'nothing waits',
    async () => (await cli.json(['webhook', 'show', team.id, endpoint.id])).backlog === 0,
  )
  const events = receiver.received.map(({ body }) => [body.type, body.data.email_id])
  t.strictSame(events, [['email.delivered', own]])
})

t.test('reports a WhatsApp message from sent to read', async (t) => {
  const { team, receiver } = await begin(t)
  await startWorker(t, service)
  const { id: template_id } = await makeTemplate(service, team.id)
  const [to] = numbers(1)
  const message = { to: [to], idempotency_key: 'w-1' }
  const [message_id = ''] = await sendWhatsapp(service, team, template_id, message)
  const event = { team_id: team.id, message_id, occurred_at: new Date(), detail: 'a word', code: null }
  for (const kind of ['sent', 'failed', 'delivered', 'read'] as const)
    await service.database.transaction((tx) => applyWhatsappEvents(tx, [{ ...event, kind, event_key: kind }]))
  await until('all came', () => receiver.received.length >= 4)
  t.strictSame(receiver.received.map(({ body: { type, data } }) => [type, data.rank]).sort(), [
    ['whatsapp.delivered', 3],
    ['whatsapp.failed', 2],
    ['whatsapp.read', 4],
    ['whatsapp.sent', 1],
  ])
  for (const { body } of receiver.received)
    t.match(body.data, { message_id, to, recipient: to, template_id, idempotency_key: 'w-1' })
})

t.test('teams without endpoints cost no extra statement and get nothing', async (t) => {
  const { team, endpoint } = await begin(t, { types: 'email.sent' })
  const statements = async () => {
    const [id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
    const event = anEvent({ team_id: team.id, email_id: id, kind: 'sent' })
    return statementsOf(service.database, (tx) => applyEmailEvents(tx, [event], new Date()))
  }
  const heard = await statements()
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  t.ok((await statements()) > 3, 'what happens in the first week is kept')
  await service.database.query(sql.unsafe`
    update webhook_endpoints set disabled_at = now() - interval '8 days' where id = ${endpoint.id}`)
  const silent = await statements()
  t.equal(silent, 3, 'locks, stores, changes')
  t.ok(heard > silent)
  t.match(await cli.json(['webhook', 'show', team.id, endpoint.id]), { backlog: 0, attempts: EMPTY })
  await cli.json(['webhook', 'remove', team.id, endpoint.id])
  t.equal(await statements(), 3)
})

t.test('webhooks of copies name each list and recipient', async (t) => {
  const { team, receiver } = await begin(t)
  const sink = await startSmtpSink(t, {
    onRcpt: (recipient) => (recipient.startsWith('quiet') ? '550 5.1.1 No such user' : undefined),
  })
  // An endpoint of another domain, which gets nothing about this one's email.
  const { secrets } = service.deps
  await service.database.transaction((tx) =>
    verifiedDomain({ tx, secrets, now: new Date() }, team.id, 'elsewhere.example'),
  )
  const bound = await startReceiver(t)
  const { url } = bound
  await cli.json(['webhook', 'add', team.id, '--url', url, '--types', '*', '--domain', 'elsewhere.example'])
  await startWorker(t, service, { smtp_url: sink.url })
  const lists = { to: ['Ana <ana@example.org>'], cc: ['zoe@example.org'], bcc: ['quiet@example.org'] }
  for (const body of [anEmail(lists), anEmail({ to: ['ben@example.org'], cc: [] })])
    t.equal((await service.call('POST', '/v1/emails', { key: team.key, body })).status, 201)
  await until('all came', () => receiver.received.length >= 5)
  const emails = receiver.received.filter(({ body }) => body.type.startsWith('email.'))
  const about = emails.map(({ body: { type, data } }) => [
    ...[type, data.recipient],
    ...[data.to, data.cc ?? 'no cc', data.bcc ?? 'no bcc'],
  ])
  const all = [lists.to, lists.cc, lists.bcc]
  t.strictSame(about.sort(), [
    ['email.bounced', 'quiet@example.org', ...all],
    ['email.sent', 'ana@example.org', ...all],
    ['email.sent', 'ben@example.org', ['ben@example.org'], 'no cc', 'no bcc'],
    ['email.sent', 'zoe@example.org', ...all],
  ])
  t.match(
    receiver.received.find(({ body }) => body.type === 'contact.suppressed')?.body.data,
    { contact_id: null, email: 'quiet@example.org', status: null, cause: 'bounce', email_id: String },
    'an address needs no contact',
  )
  t.strictSame(bound.received, [])
})
