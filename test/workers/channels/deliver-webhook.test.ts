/**
 * Webhooks, from what happens to a team's own server: real workers, the CLI, a receiver with the reference library.
 */
import { sql } from 'slonik'
import t, { type Test } from 'tap'
import { number, object, string } from 'yup'
import { applyEmailEvents } from '../../../db/messages/emails/apply-events.ts'
import type { EmailEventKind } from '../../../db/messages/emails/status.ts'
import { applyWhatsappEvents } from '../../../db/messages/whatsapp/apply-events.ts'
import { openDatabase, type Tx } from '../../../db/postgres/pool.ts'
import { networksOf, resolver } from '../../../db/process/public-address.ts'
import { onWake } from '../../../db/queue/wake.ts'
import { forgetMessages } from '../../../db/upkeep/retention/forget.ts'
import { startInbox } from '../../sandbox/inbox.ts'
import { adminCli } from '../../support/admin.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { verifiedDomain } from '../../support/domain.ts'
import { isVerified, startReceiver } from '../../support/receiver.ts'
import { eventsOf, storeContact, storeEmails } from '../../support/reports.ts'
import { ageByADay, jobStates, setJobsDue } from '../../support/rows.ts'
import { anEmail, makeTeam, type Service, startService } from '../../support/service.ts'
import { startSmtpScript } from '../../support/smtp-script.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
/** Rows are stored past the service's own connections: the API prepares its statement of that name otherwise. */
const rows = { database: await openDatabase(service.url, { size: 2 }) }
t.teardown(() => rows.database.end())
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })

/** A team with a receiver that is told of these types, and a worker. */
async function begin(t: Test, { types = '*', worker = {} }: { types?: string; worker?: object } = {}) {
  const team = await makeTeam(service)
  const receiver = await startReceiver(t)
  const endpoint = await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', types])
  const show = () => cli.json(['webhook', 'show', team.id, endpoint.id])
  return { team, receiver, endpoint, show, work: () => startWorker(t, service, worker) }
}

/** Something happens to an email, as a report would tell it. */
const happen = (
  { database }: Service,
  {
    team_id,
    email_id,
    kind,
    key = kind,
  }: { team_id: string; email_id: string; kind: EmailEventKind; key?: string },
) =>
  database.transaction((tx) =>
    applyEmailEvents(
      tx,
      [
        {
          team_id,
          email_id,
          kind,
          recipient: null,
          occurred_at: new Date(),
          detail: `it is ${kind}`,
          event_key: key,
        },
      ],
      new Date(),
    ),
  )

t.test('an email that is sent is told to each endpoint, signed as Standard Webhooks has it', async (t) => {
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
  await until('it is told', () => receiver.received.length > 0)
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
  t.match(shown.attempts, [{ event_id: one.id, type: 'email.sent', status: 204, ms: Number, response: '' }])
  t.notMatch(JSON.stringify(await cli.json(['webhook', 'list', team.id])), /whsec_/)
})

t.test('a message that is not taken is tried again with the same bytes and the same id', async (t) => {
  const { team, receiver, show, work } = await begin(t, { types: 'email.bounced,email.delivered' })
  let tries = 0
  receiver.answer = (_one, response) => {
    tries += 1
    response
      .writeHead(tries === 1 ? 404 : tries === 2 ? 302 : 200, { location: '/elsewhere' })
      .end(`try ${tries}`)
  }
  await work()
  const [id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await happen(service, { team_id: team.id, email_id: id, kind: 'sent' })
  await happen(service, { team_id: team.id, email_id: id, kind: 'bounced' })
  await until('it is taken', async () => (await show()).last_success_at !== null)
  t.equal(new Set(receiver.received.map(({ raw }) => raw)).size, 1)
  t.equal(new Set(receiver.received.map((one) => one.id)).size, 1)
  t.match(receiver.received[0]?.body, { type: 'email.bounced', data: { rank: 5, detail: 'it is bounced' } })
  t.match(
    (await show()).attempts.map(({ status, response }: { status: number; response: string }) => [
      status,
      response,
    ]),
    [
      [200, 'try 3'],
      [302, 'try 2'],
      [404, 'try 1'],
    ],
  )
})

t.test('what is not taken in the end stands as failed, and is told again by a replay', async (t) => {
  const { team, receiver, endpoint, show, work } = await begin(t, { types: 'email.delivered' })
  receiver.answer = (_one, response) => void response.writeHead(500).end()
  await work()
  const [id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  await until('it is given up', async () => (await show()).backlog === 0 && receiver.received.length === 3)
  t.equal(typeof (await show()).failing_since, 'string')
  receiver.answer = null
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--type', 'email.sent']), { replayed: 0 })
  const mistyped = ['webhook', 'replay', team.id, endpoint.id, '--type', 'email.send']
  t.match(await cli.fault(mistyped), /there is no type "email.send"/)
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 1 })
  await until('it is told', async () => (await show()).last_success_at !== null)
  t.equal(new Set(receiver.received.map((one) => one.id + one.raw)).size, 1)
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 0 })
})

t.test('410 disables an endpoint: what waits for it has failed, and nothing more goes there', async (t) => {
  const { team, receiver, endpoint, show, work } = await begin(t)
  receiver.answer = (_one, response) => void response.writeHead(410).end()
  const ids = await storeEmails(rows, team.id, [['a@example.org'], ['b@example.org']])
  for (const id of ids) await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  await work()
  await until('it is disabled', async () => (await show()).state === 'disabled')
  t.match(await show(), { backlog: 0, state_reason: 'it answered 410' })
  const [id = ''] = await storeEmails(rows, team.id, [['c@example.org']])
  await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  t.match(await cli.fault(['webhook', 'test', team.id, endpoint.id]), /disabled/)
  await cli.json(['webhook', 'enable', team.id, endpoint.id])
  receiver.answer = null
  receiver.received.length = 0
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 2 })
  await until('both are told', () => receiver.received.length === 2)
  t.strictSame(receiver.received.map(({ body }) => body.data.email_id).sort(), [...ids].sort())
})

t.test('a server that asks to wait is left alone for as long, and no try counts', async (t) => {
  const { team, receiver, endpoint, show, work } = await begin(t)
  receiver.answer = (_one, response) => void response.writeHead(429, { 'retry-after': '600' }).end()
  await work()
  t.match(await cli.json(['webhook', 'test', team.id, endpoint.id]), { event_id: String })
  await until('it is paused', async () => (await show()).paused_until !== null)
  t.match(await show(), { backlog: 1, state: 'enabled' })
  const { counted } = await service.database.one(sql.type(object({ counted: number().defined() }))`
    select count(*) filter (where counts) as counted from webhook_attempts where endpoint_id = ${endpoint.id}`)
  t.equal(counted, 0)
  const before = receiver.received.length
  receiver.answer = null
  await cli.json(['sender', 'resume', `webhook:${endpoint.id}`])
  await until('it is told', () => receiver.received.length > before)
  t.match(receiver.received.at(-1)?.body, { type: 'webhook.test' })
})

t.test('while a secret is replaced both sign, until the old one is dropped', async (t) => {
  const { team, receiver, endpoint, work } = await begin(t)
  const rotated = await cli.json(['webhook', 'rotate', team.id, endpoint.id])
  t.not(rotated.secret, endpoint.secret)
  await work()
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is told', () => receiver.received.length === 1)
  const [both] = receiver.received
  t.ok(both && isVerified(both, endpoint.secret) && isVerified(both, rotated.secret))
  const last = await cli.json(['webhook', 'rotate', team.id, endpoint.id, '--now'])
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is told', () => receiver.received.length === 2)
  const [, one] = receiver.received
  t.ok(one && isVerified(one, last.secret) && !isVerified(one, rotated.secret))
})

t.test('contacts’ turns and an email’s first delay are told, once each', async (t) => {
  const { team, receiver, work } = await begin(t)
  await work()
  await storeContact(service, team.id, 'Ana@example.org')
  for (const verb of ['unsubscribe', 'unsubscribe', 'resubscribe'])
    await service.call('POST', `/v1/contacts/ana@example.org/${verb}`, { key: team.key, body: {} })
  const [id = ''] = await storeEmails(rows, team.id, [['ana@example.org']])
  for (const [kind, key] of [
    ['deferred', '1'],
    ['delayed', '2'],
    ['deferred', '3'],
  ] as const)
    await happen(service, { team_id: team.id, email_id: id, kind, key })
  await service.database.transaction((tx) =>
    applyEmailEvents(
      tx,
      [
        {
          ...{
            team_id: team.id,
            email_id: id,
            kind: 'bounced' as const,
            event_key: '4',
            detail: 'no such user',
          },
          ...{ recipient: null, occurred_at: new Date(), effect: 'hard' as const },
        },
      ],
      new Date(),
    ),
  )
  await cli.json(['contact', 'lift', team.id, 'ana@example.org', '--reason', 'they wrote to us'])
  await until('all is told', () => receiver.received.length >= 6)
  const told = receiver.received.map(({ body }) => body)
  t.strictSame(told.map(({ type }) => type).sort(), [
    'contact.released',
    'contact.resubscribed',
    'contact.suppressed',
    'contact.unsubscribed',
    'email.bounced',
    'email.delivery_delayed',
  ])
  t.match(
    told.find(({ type }) => type === 'contact.suppressed'),
    {
      data: { contact_id: String, email: 'Ana@example.org', suppression: 'bounced', detail: 'no such user' },
    },
  )
})

t.test('an email that is given up is told as failed', async (t) => {
  const { team, receiver } = await begin(t, { types: 'email.failed' })
  const script = await startSmtpScript(t, (step) => (step === 'rcpt' ? '451 4.2.1 not now' : undefined))
  const { body: sent } = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  await startWorker(t, service, { smtp_url: script.url })
  await until('it is put off', async () => (await eventsOf(service, sent.id)).length > 0)
  await until('its job waits', async () => (await jobStates(service, sent.id))[0] === 'retry')
  await ageByADay(service, sent.id)
  await setJobsDue(service, sent.id)
  await until('it is told', () => receiver.received.length > 0)
  t.match(receiver.received[0]?.body, {
    type: 'email.failed',
    data: { email_id: sent.id, recipient: null, rank: 0, detail: /451 4\.2\.1 not now/ },
  })
})

t.test('an endpoint of one domain is told of its emails, and of nothing else', async (t) => {
  const { team, receiver, endpoint, work } = await begin(t)
  const { secrets } = service.deps
  const other = await service.database.transaction((tx) =>
    verifiedDomain({ tx, secrets, now: new Date() }, team.id, `${team.id}.test`),
  )
  await cli.json(['webhook', 'set', team.id, endpoint.id, '--domain', other.name])
  await storeContact(service, team.id, 'ana@example.org')
  await service.call('POST', '/v1/contacts/ana@example.org/unsubscribe', { key: team.key, body: {} })
  const [foreign = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  const [own = ''] = await storeEmails(rows, team.id, [['a@example.org']], { domain_id: other.id })
  for (const email_id of [foreign, own])
    await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
  await work()
  await until(
    'nothing waits',
    async () => (await cli.json(['webhook', 'show', team.id, endpoint.id])).backlog === 0,
  )
  t.strictSame(
    receiver.received.map(({ body }) => [body.type, body.data.email_id]),
    [['email.delivered', own]],
  )
})

t.test('a WhatsApp message is told from sent to read, and as failed', async (t) => {
  const { team, receiver, work } = await begin(t)
  await work()
  const { id: template_id } = await makeTemplate(service, team.id)
  const body = aMessage(template_id, { idempotency_key: 'w-1' })
  const { body: sent } = await service.call('POST', '/v1/whatsapp/messages', { key: team.key, body })
  const [{ id: message_id, to }] = sent.data
  const event = { team_id: team.id, message_id, occurred_at: new Date(), detail: 'a word', code: null }
  for (const kind of ['sent', 'failed', 'delivered', 'read'] as const)
    await service.database.transaction((tx) => applyWhatsappEvents(tx, [{ ...event, kind, event_key: kind }]))
  await until('all is told', () => receiver.received.length >= 4)
  t.strictSame(receiver.received.map(({ body: { type, data } }) => [type, data.rank]).sort(), [
    ['whatsapp.delivered', 3],
    ['whatsapp.failed', 2],
    ['whatsapp.read', 4],
    ['whatsapp.sent', 1],
  ])
  for (const { body } of receiver.received)
    t.match(body.data, { message_id, to, recipient: to, template_id, idempotency_key: 'w-1' })
})

t.test('a fresh webhook wakes idle workers once it is committed', async (t) => {
  const { team, endpoint } = await begin(t)
  const woken: string[] = []
  const hints = onWake(service.url, [], (job) => void woken.push(job))
  t.teardown(() => hints.close())
  await until('workers are woken', async () => {
    await cli.json(['webhook', 'test', team.id, endpoint.id])
    return woken.includes('deliver-webhook')
  })
  t.ok(woken.every((job) => job === 'deliver-webhook'))
})

t.test('an address that is not public is refused at each try, and nothing more is said', async (t) => {
  const names = new Map([
    ['inside.test', ['10.0.0.7']],
    ['both.test', ['93.184.215.14', '127.0.0.1']],
  ])
  const webhooks = {
    concurrency: 32,
    allowed: networksOf([]),
    resolve: async (name: string) => names.get(name) ?? [],
    pauses: [0.05],
  }
  const { team, receiver, show, work } = await begin(t, { worker: { webhooks } })
  const add = (url: string) => cli.json(['webhook', 'add', team.id, '--url', url])
  const others = [await add('https://inside.test/'), await add('https://both.test/')]
  for (const url of [
    'http://example.com/',
    'https://10.0.0.1/',
    'https://[::1]/',
    'https://2852039166/',
    'ftp://x.test',
  ])
    t.match(await cli.fault(['webhook', 'add', team.id, '--url', url]), /url must/, url)
  await work()
  const [id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  for (const endpoint of others) {
    const attempts = async () => (await cli.json(['webhook', 'show', team.id, endpoint.id])).attempts
    await until('it was tried', async () => (await attempts()).length > 0)
    t.match(await attempts(), [{ status: null, response: 'refused: not a public address' }])
  }
  await until('the first was tried', async () => (await show()).attempts.length > 0)
  t.match((await show()).attempts[0], { status: null, response: 'refused: not a public address' })
  t.equal(receiver.received.length, 0)
})

/** A transaction that counts its statements. */
function counting(tx: Tx): { tx: Tx; count(): number } {
  let count = 0
  const proxy = new Proxy(tx, {
    get(target, name, self) {
      if (['any', 'one', 'maybeOne', 'query', 'exists'].includes(String(name))) count += 1
      return Reflect.get(target, name, self)
    },
  })
  return { tx: proxy, count: () => count }
}

t.test('teams without endpoints cost no statement more, and are told nothing', async (t) => {
  const { team, endpoint } = await begin(t, { types: 'email.sent' })
  const statements = async () => {
    const [id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
    return service.database.transaction(async (given) => {
      const { tx, count } = counting(given)
      const event = { team_id: team.id, email_id: id, kind: 'sent' as const, recipient: null, event_key: '1' }
      await applyEmailEvents(tx, [{ ...event, occurred_at: new Date(), detail: '' }], new Date())
      return count()
    })
  }
  const told = await statements()
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  const silent = await statements()
  t.equal(silent, 3, 'locks, stores, changes')
  t.ok(told > silent)
  t.match(await cli.json(['webhook', 'show', team.id, endpoint.id]), { backlog: 0, attempts: [] })
})

t.test(
  'an endpoint is changed and removed; a team has ten at most; each act is in the audit trail',
  async (t) => {
    const { team, endpoint, receiver } = await begin(t)
    const set = ['webhook', 'set', team.id, endpoint.id]
    t.match(
      await cli.json([
        ...set,
        '--name',
        'Billing',
        '--types',
        'email.sent,email.sent',
        '--domain',
        'example.com',
      ]),
      {
        name: 'Billing',
        types: ['email.sent'],
        domain: 'example.com',
      },
    )
    t.match(await cli.json([...set, '--domain', 'none', '--types', '*']), { types: ['*'], domain: null })
    t.match(await cli.fault([...set, '--types', 'email.eaten']), /there is no type "email.eaten"/)
    t.match(await cli.fault([...set, '--domain', 'other.test']), /there is no domain other.test/)
    for (let more = 1; more < 10; more += 1)
      await cli.json(['webhook', 'add', team.id, '--url', receiver.url])
    t.match(await cli.fault(['webhook', 'add', team.id, '--url', receiver.url]), /at most 10/)
    t.match(await cli.json(['webhook', 'remove', team.id, endpoint.id]), { id: endpoint.id, removed: true })
    t.match(await cli.fault(['webhook', 'show', team.id, endpoint.id]), /there is no webhook/)
    t.equal((await cli.json(['webhook', 'list', team.id])).length, 9)
    const acts = (await cli.json(['audit', 'list', '--team', team.id])).map(
      ({ action }: { action: string }) => action,
    )
    for (const act of ['webhook.add', 'webhook.set', 'webhook.remove']) t.ok(acts.includes(act), act)
  },
)

t.test(
  'erasing a person takes what waits to be told of them; what is over goes after its days',
  async (t) => {
    const { team, endpoint, show } = await begin(t)
    const contact = await storeContact(service, team.id, 'eve@example.org')
    await service.call('POST', '/v1/contacts/eve@example.org/unsubscribe', { key: team.key, body: {} })
    for (const to of ['eve@example.org', 'other@example.org']) {
      const [id = ''] = await storeEmails(rows, team.id, [[to]])
      await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
    }
    t.equal((await show()).backlog, 3)
    await cli.json(['contact', 'erase', team.id, 'eve@example.org'])
    t.equal((await show()).backlog, 1)
    const told = await service.database.any(sql.type(object({ body: string().defined() }))`
    select body from webhook_messages where endpoint_id = ${endpoint.id}`)
    t.notMatch(JSON.stringify(told), new RegExp(`eve@|${contact}`))
    await service.database.query(sql.unsafe`
    update webhook_messages set status = 'delivered' where endpoint_id = ${endpoint.id}`)
    const none = { reports: 30, events: null, bodies: null, messages: null, senders: null, files: 3 }
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)
    await forgetMessages(service.database, none, inDays(2))
    const left = async () =>
      await service.database.oneFirst(sql.type(object({ count: number().defined() }))`
      select count(*) as count from webhook_messages where endpoint_id = ${endpoint.id}`)
    t.equal(await left(), 1)
    await forgetMessages(service.database, none, inDays(4))
    t.equal(await left(), 0)
  },
)

t.test('an owner makes a webhook on the dashboard, sees what came back, and repairs it', async (t) => {
  const team = await makeTeam(service)
  const receiver = await startReceiver(t)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = (...rest: string[]) => ['', 'teams', team.id, 'webhooks', ...rest].join('/')
  await startWorker(t, service)
  t.match((await owner.post(at(), { url: 'http://10.0.0.1/', types: '*' })).status, 400)
  const made = await owner.post(at(), { url: receiver.url, name: 'Billing', types: ['email.bounced', '*'] })
  const id = made.location?.split('/').at(-1) ?? ''
  const shown = await owner.get(at(id))
  const [secret = ''] = /whsec_[A-Za-z0-9+/]{43}=/.exec(shown.html.replaceAll('&#x3D;', '=')) ?? []
  t.not(secret, '')
  t.notMatch((await owner.get(at(id))).html, /whsec_/)
  receiver.answer = (_one, response) => void response.writeHead(418).end('no <tea>')
  await owner.post(at(id, 'test'))
  await until('it failed', async () => /418/.test(textOf((await owner.get(at(id))).html)))
  shows(t, await owner.get(at(id)), /failing.*webhook\.test 418 no <tea>/)
  receiver.answer = null
  await until('nothing waits', async () => (await cli.json(['webhook', 'show', team.id, id])).backlog === 0)
  const again = await owner.post(at(id, 'replay'), { what: 'over' })
  shows(t, await owner.get(again.location ?? ''), '1 webhook on the way once more')
  const last = receiver.received.at(-1)
  if (!last) throw new Error('nothing came')
  t.ok(isVerified(last, secret))
  shows(t, await owner.get(at(id, 'events', last.id)), /"type": "webhook\.test"/)
  await cli.json(['domain', 'add', team.id, 'gone.test'])
  await cli.json(['webhook', 'set', team.id, id, '--domain', 'gone.test'])
  await cli.json(['domain', 'remove', team.id, 'gone.test'])
  const choice = /<option value="removed" selected/
  t.match(
    (await owner.get(at(id))).html,
    choice,
    'a removed domain stays chosen, so that saving widens nothing',
  )
  await owner.post(at(id, 'disable'), { confirmed: 'yes' })
  shows(t, await owner.get(at()), /disabled Billing/)
  await owner.post(at(id, 'enable'))
  await owner.post(at(id, 'remove'), { confirmed: 'yes' })
  shows(t, await owner.get(at()), /No webhooks yet/)
})

t.test('the sandbox shows the webhooks that it received, and whether they are genuine', async (t) => {
  const inbox = await startInbox({ port: 0, sandbox: { messages: () => [], clear: () => {} } })
  t.teardown(() => inbox.close())
  const here = `http://127.0.0.1:${inbox.port}`
  const team = await makeTeam(service)
  const { id, secret } = await cli.json(['webhook', 'add', team.id, '--url', `${here}/webhooks`])
  await startWorker(t, service)
  await cli.json(['webhook', 'test', team.id, id])
  const came = async () => (await fetch(`${here}/webhooks/messages`)).json()
  await until('it came', async () => ((await came()) as unknown[]).length === 1)
  t.match(await came(), [{ type: 'webhook.test', verified: false }])
  const trusted = (word: string) =>
    fetch(`${here}/webhooks/secrets`, { method: 'POST', body: new URLSearchParams({ secret: word }) })
  t.equal((await trusted('whsec_!')).status, 400)
  t.equal((await trusted(secret)).status, 200)
  t.match(await came(), [{ type: 'webhook.test', verified: true }])
  t.match(await (await fetch(`${here}/webhooks`)).text(), /webhook.test · verified/)
  t.equal((await fetch(`${here}/webhooks`, { method: 'POST', body: 'no JSON' })).status, 400)
})

t.test(
  'five days of nothing but failures disable an endpoint; a body that is refused is tried three times',
  async (t) => {
    const { team, receiver, endpoint, show } = await begin(t)
    const webhooks = {
      concurrency: 4,
      allowed: networksOf(['127.0.0.0/8']),
      resolve: resolver(),
      pauses: Array(9).fill(0.02),
    }
    await startWorker(t, service, { webhooks })
    receiver.answer = (_one, response) => void response.writeHead(413).end()
    await cli.json(['webhook', 'test', team.id, endpoint.id])
    await until('it is given up', async () => (await show()).backlog === 0)
    t.strictSame(
      (await show()).attempts.map(({ status }: { status: number }) => status),
      [413, 413, 413],
    )
    t.match(await show(), { state: 'enabled', failing_since: String })
    await service.database.query(sql.unsafe`
    update webhook_endpoints set failing_since = now() - interval '121 hours' where id = ${endpoint.id}`)
    await cli.json(['webhook', 'test', team.id, endpoint.id])
    await until('it is disabled', async () => (await show()).state === 'disabled')
    t.match(await show(), { state_reason: 'nothing but failures for five days', backlog: 0 })
  },
)
