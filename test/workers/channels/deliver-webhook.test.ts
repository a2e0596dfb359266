/**
 * Delivery of webhooks: attempts, failures and replays, secrets, addresses. Real workers, the CLI, a
 * receiver.
 */
import type { ServerResponse } from 'node:http'
import { sql } from 'slonik'
import { number, object } from 'yup'
import { createNames } from '../../../db/process/dns.ts'
import { networksIn } from '../../../db/process/public-address.ts'
import { onWake } from '../../../db/queue/wake.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { EMPTY } from '../../support/empty.ts'
import { erasePerson } from '../../support/erase.ts'
import { isVerified, type Receiver, startReceiver } from '../../support/receiver.ts'
import { storeEmails } from '../../support/reports.ts'
import { pour, startTalker } from '../../support/talker.ts'
import t from '../../support/tap.ts'
import { happen, startWebhooks } from '../../support/webhooks.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, rows, cli, begin } = await startWebhooks(t)

t.test('retries a failed webhook with the same bytes and ID', async (t) => {
  const { team, receiver, show } = await begin(t, { types: 'email.bounced,email.delivered' })
  let tries = 0
  receiver.answer = (_one, response) => {
    tries += 1
    response
      .writeHead(tries === 1 ? 404 : tries === 2 ? 302 : 200, { location: '/elsewhere' })
      .end(`try ${tries}`)
  }
  await startWorker(t, service)
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

t.test('a never accepted webhook fails, and a replay sends it', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t, { types: 'email.delivered' })
  receiver.answer = (_one, response) => void response.writeHead(500).end()
  await startWorker(t, service)
  const [id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  await until('it is given up', async () => (await show()).backlog === 0 && receiver.received.length === 3)
  t.equal(typeof (await show()).failing_since, 'string')
  receiver.answer = null
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--type', 'email.sent']), { replayed: 0 })
  const mistyped = ['webhook', 'replay', team.id, endpoint.id, '--type', 'email.send']
  t.match(await cli.fault(mistyped), /"email.send" isn't one of/)
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 1 })
  await until('it came', async () => (await show()).last_success_at !== null)
  t.equal(new Set(receiver.received.map((one) => one.id + one.raw)).size, 1)
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 0 })
})

t.test('410 disables an endpoint and fails its waiting webhooks', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  receiver.answer = (_one, response) => void response.writeHead(410).end()
  const ids = await storeEmails(rows, team.id, [['a@example.org'], ['b@example.org']])
  for (const id of ids) await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  await startWorker(t, service)
  await until('it is disabled', async () => (await show()).state === 'disabled')
  t.match(await show(), { backlog: 0, state_reason: 'it returned 410' })
  const [id = ''] = await storeEmails(rows, team.id, [['c@example.org']])
  await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  t.match(await cli.fault(['webhook', 'test', team.id, endpoint.id]), /disabled/)
  await cli.json(['webhook', 'enable', team.id, endpoint.id])
  receiver.answer = null
  receiver.received.length = 0
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 3 })
  await until('all three came', () => receiver.received.length === 3)
  t.strictSame(receiver.received.map(({ body }) => body.data.email_id).sort(), [...ids, id].sort())
})

t.test('stores a disabled webhook’s first week for a replay', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  await startWorker(t, service)
  const delivered = async (address: string): Promise<string> => {
    const [email_id = ''] = await storeEmails(rows, team.id, [[address]])
    await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
    return email_id
  }
  const messages = () => cli.json(['webhook', 'messages', team.id, endpoint.id])
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  const missed = [await delivered('a@example.org'), await delivered('b@example.org')]
  t.match(await messages(), [{ status: 'failed' }, { status: 'failed' }])
  t.match(await show(), { state: 'disabled', disabled_at: String, backlog: 0 })
  const [{ event_id }] = await messages()
  t.match(await cli.json(['webhook', 'message', team.id, endpoint.id, event_id]), {
    ...{ status: 'failed', waiting: null, attempts: EMPTY },
    events: [{ kind: 'gave_up', detail: 'disabled' }],
  })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = `/teams/${team.id}/webhooks/${endpoint.id}`
  shows(t, await owner.get(at), 'Events of the first 7 days are stored as failed')
  shows(t, await owner.get(`${at}/events/${event_id}`), 'Not sent: the webhook was disabled.')
  const jobs = await service.database.any(sql.unsafe`
    select from pgboss.job where name = 'deliver-webhook' and data ->> 'team_id' = ${team.id}`)
  t.equal(jobs.length, 0)
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  await service.database.query(sql.unsafe`
    update webhook_endpoints set disabled_at = disabled_at - interval '8 days' where id = ${endpoint.id}`)
  await delivered('c@example.org')
  t.equal((await messages()).length, 2, 'after a week nothing more is kept')
  await cli.json(['webhook', 'enable', team.id, endpoint.id])
  t.match(await show(), { disabled_at: null })
  t.equal(receiver.received.length, 0)
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 2 })
  await until('both came', () => receiver.received.length === 2)
  t.strictSame(receiver.received.map(({ body }) => body.data.email_id).sort(), [...missed].sort())
  await until('they are recorded', async () => (await show()).last_success_at !== null)
})

t.test('a new URL ends a wait requested by the old one', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  const healthy = await startReceiver(t)
  receiver.answer = (_one, response) => void response.writeHead(503, { 'retry-after': '3600' }).end()
  await startWorker(t, service)
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is paused', async () => (await show()).paused_until !== null)
  const set = ['webhook', 'set', team.id, endpoint.id]
  t.match(await cli.json([...set, '--name', 'Billing', '--url', receiver.url]), { paused_until: String })
  t.match(await cli.json([...set, '--url', healthy.url]), { paused_until: null })
  await until('it came', () => healthy.received.length === 1)
})

/** Makes a receiver delay its response. @returns the first response, to send later. */
function heldAnswer(receiver: Receiver): Promise<ServerResponse> {
  const { promise, resolve } = Promise.withResolvers<ServerResponse>()
  receiver.answer = (_one, response) => resolve(response)
  return promise
}

t.test('a late response of the old URL changes nothing', async (t) => {
  await startWorker(t, service)
  for (const [status, headers] of [
    [410, {}],
    [503, { 'retry-after': '3600' }],
  ] as const) {
    const { team, receiver, endpoint, show } = await begin(t)
    const healthy = await startReceiver(t)
    const answer = heldAnswer(receiver)
    await cli.json(['webhook', 'test', team.id, endpoint.id])
    const response = await answer
    await cli.json(['webhook', 'set', team.id, endpoint.id, '--url', healthy.url])
    response.writeHead(status, headers).end()
    await until('it came to the new one', async () => (await show()).last_success_at !== null)
    const ids = healthy.received.map(({ id }) => id)
    const others = receiver.received.map(({ id }) => id)
    t.strictSame(ids, others)
    const { state, paused_until, failing_since, attempts } = await show()
    t.strictSame([state, paused_until, failing_since, attempts.length], ['enabled', null, null, 1])
  }
})

t.test("an attempt after a webhook's deletion stores nothing", async (t) => {
  const left = (team_id: string, endpoint: string) =>
    service.database.one(sql.type(object({ rows: number().defined() }))`
      select (select count(*) from webhook_events where team_id = ${team_id})
        + (select count(*) from senders where key = ${`webhook:${endpoint}`}) as rows`)
  for (const [status, headers] of [
    [200, {}],
    [410, {}],
    [503, { 'retry-after': '3600' }],
  ] as const) {
    for (const gone of ['webhook', 'person'] as const) {
      const { team, receiver, endpoint } = await begin(t)
      const worker = await startWorker(t, service)
      const answer = heldAnswer(receiver)
      const [email_id = ''] = await storeEmails(rows, team.id, [['ana@example.org']])
      await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
      const response = await answer
      if (gone === 'webhook') await cli.json(['webhook', 'remove', team.id, endpoint.id])
      else await erasePerson({ ...service.deps, database: service.database }, team.id, 'ana@example.org')
      response.writeHead(status, headers).end('delivered to ana@example.org')
      await worker.stop()
      t.strictSame(await left(team.id, endpoint.id), { rows: 0 }, `${gone} gone, ${status}`)
    }
  }
})

t.test('five days of only failures disable an endpoint', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  const webhooks = {
    concurrency: 4,
    allowed: networksIn(['127.0.0.0/8']),
    resolve: createNames().addresses,
    pauses: Array(9).fill(0.02),
  }
  await startWorker(t, service, { webhooks })
  receiver.answer = (_one, response) => void response.writeHead(413).end()
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is given up', async () => (await show()).backlog === 0)
  const statuses = (await show()).attempts.map(({ status }: { status: number }) => status)
  t.strictSame(statuses, [413, 413, 413])
  t.match(await show(), { state: 'enabled', failing_since: String })
  await service.database.query(sql.unsafe`
    update webhook_endpoints set failing_since = now() - interval '121 hours' where id = ${endpoint.id}`)
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is disabled', async () => (await show()).state === 'disabled')
  t.match(await show(), { state_reason: 'only failures for five days', backlog: 0 })
})

t.test('a server’s requested wait is respected and counts no attempt', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  receiver.answer = (_one, response) => void response.writeHead(429, { 'retry-after': '600' }).end()
  await startWorker(t, service)
  t.match(await cli.json(['webhook', 'test', team.id, endpoint.id]), { event_id: String })
  await until('it is paused', async () => (await show()).paused_until !== null)
  t.match(await show(), { backlog: 1, state: 'enabled' })
  const { counted } = await service.database.one(sql.type(object({ counted: number().defined() }))`
    select count(*) filter (where counts) as counted from webhook_events where endpoint_id = ${endpoint.id}`)
  t.equal(counted, 0)
  const before = receiver.received.length
  receiver.answer = null
  await cli.json(['sender', 'resume', `webhook:${endpoint.id}`])
  await until('it came', () => receiver.received.length > before)
  t.match(receiver.received.at(-1)?.body, { type: 'webhook.test' })
})

t.test('a server that floods responses is paused for five minutes', async (t) => {
  const { team, endpoint } = await begin(t)
  await cli.json(['webhook', 'remove', team.id, endpoint.id])
  const flood = await startTalker(t, (socket) => pour(socket, 'HTTP/1.1 103 E\r\n\r\n'.repeat(4_000)))
  const { id } = await cli.json(['webhook', 'add', team.id, '--url', flood.url])
  await startWorker(t, service)
  await cli.json(['webhook', 'test', team.id, id])
  const shown = () => cli.json(['webhook', 'show', team.id, id])
  await until('it is paused', async () => (await shown()).paused_until !== null)
  const { attempts, paused_until } = await shown()
  t.match(attempts, [{ status: null, response: 'more than 8 informational responses' }])
  t.ok(Date.parse(paused_until) - Date.now() > 200_000)
})

t.test('both secrets sign until the old one is removed', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  const rotated = await cli.json(['webhook', 'rotate', team.id, endpoint.id])
  t.not(rotated.secret, endpoint.secret)
  await startWorker(t, service)
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it came', () => receiver.received.length === 1)
  const [both] = receiver.received
  t.ok(both && isVerified(both, endpoint.secret) && isVerified(both, rotated.secret))
  const last = await cli.json(['webhook', 'rotate', team.id, endpoint.id, '--now'])
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it came', () => receiver.received.length === 2)
  const [, one] = receiver.received
  t.ok(one && isVerified(one, last.secret) && !isVerified(one, rotated.secret))
})

t.test('a non-public address is rejected at each attempt without details', async (t) => {
  const names = new Map([
    ['inside.test', ['10.0.0.7']],
    ['both.test', ['93.184.215.14', '127.0.0.1']],
  ])
  const webhooks = {
    concurrency: 32,
    allowed: networksIn([]),
    resolve: async (name: string) => names.get(name) ?? [],
    pauses: [0.05],
  }
  const { team, receiver, show } = await begin(t)
  const add = (url: string) => cli.json(['webhook', 'add', team.id, '--url', url])
  const others = [await add('https://inside.test/'), await add('https://both.test/')]
  for (const url of 'http://example.com/ https://10.0.0.1/ https://[::1]/ https://2852039166/ ftp://x.test'.split(
    ' ',
  ))
    t.match(await cli.fault(['webhook', 'add', team.id, '--url', url]), /url must/, url)
  await startWorker(t, service, { webhooks })
  const [id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  for (const endpoint of others) {
    const attempts = async () => (await cli.json(['webhook', 'show', team.id, endpoint.id])).attempts
    await until('it was tried', async () => (await attempts()).length > 0)
    t.match(await attempts(), [{ status: null, response: 'not a public address' }])
  }
  await until('the first was tried', async () => (await show()).attempts.length > 0)
  t.match((await show()).attempts[0], { status: null, response: 'not a public address' })
  t.equal(receiver.received.length, 0)
})

t.test('a new webhook wakes idle workers after its commit', async (t) => {
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
