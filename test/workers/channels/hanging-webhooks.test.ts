/** One endpoint's trouble is no other's: ten that never answer, or whose names do not, beside one that does. */
import { createServer, type ServerResponse } from 'node:http'
import { sql } from 'slonik'
import { applyEmailEvents } from '../../../db/messages/emails/apply-events.ts'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { createNames } from '../../../db/process/dns.ts'
import { LOOPBACK, networksOf } from '../../../db/process/public-address.ts'
import { adminCli } from '../../support/admin.ts'
import { startDns } from '../../support/dns.ts'
import { portOf } from '../../support/port.ts'
import { storeEmails } from '../../support/reports.ts'
import { startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { beginWebhooks } from '../../support/webhooks.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const rows = { database: await openDatabase(service.url, { size: 2 }) }
t.teardown(() => rows.database.end())
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: LOOPBACK })

const HANGING = 10
const EVENTS = 40

/** A server that answers, or takes requests and never does. */
async function startHanging(t: Test) {
  const open = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    request.resume()
    if (hanging.answers) response.writeHead(204).end()
    else open.add(response.once('close', () => open.delete(response)))
  })
  /** Answers from now on, and drops what it has. */
  const end = (): void => {
    hanging.answers = true
    server.closeAllConnections()
  }
  const hanging = { url: '', answers: false, open, end }
  hanging.url = `http://127.0.0.1:${await portOf(t, server)}/`
  return hanging
}

/** A team with ten endpoints at one server that hangs, or where it is said, and another team with one that answers. */
async function begin(t: Test, urlOf?: (nth: number) => string) {
  const hanging = await startHanging(t)
  const { team: slow, endpoint } = await beginWebhooks(t, { service, cli })
  await cli.json(['webhook', 'remove', slow.id, endpoint.id])
  for (let nth = 0; nth < HANGING; nth++)
    await cli.json(['webhook', 'add', slow.id, '--url', urlOf?.(nth) ?? hanging.url])
  const healthy = await beginWebhooks(t, { service, cli })
  /** All at once: of what comes little by little, the first may hang for too long before the last has begun. */
  const fill = async (team_id: string) => {
    const ids = await storeEmails(rows, team_id, Array(EVENTS).fill(['a@example.org']))
    const event = { team_id, kind: 'delivered' as const, recipient: null, event_key: 'it', detail: '' }
    const now = new Date()
    const events = ids.map((email_id) => ({ ...event, email_id, occurred_at: now }))
    await service.database.transaction((tx) => applyEmailEvents(tx, events, now))
  }
  return { hanging, slow, healthy, fill }
}

const send = (key: string) =>
  service.call('POST', '/v1/emails', {
    key,
    body: { from: 'hello@example.com', to: ['b@example.org'], subject: 'Hello', html: '<p>Hello</p>' },
  })

t.test('endpoints that never answer keep nothing from one that does, nor from mail', async (t) => {
  const { hanging, slow, healthy, fill } = await begin(t)
  await fill(slow.id)
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('each of them has a request that hangs', () => hanging.open.size === HANGING)
  await fill(healthy.team.id)
  await send(healthy.team.key)
  // Those that hang do so for 15 s: all of this comes while they do.
  await until('the other has all', () => healthy.receiver.received.length > EVENTS)
  t.equal(sink.messages().length, 1)
  t.ok(hanging.open.size > 0)
  hanging.end()
})

t.test('endpoints that stop answering while they are busy give their slots up', async (t) => {
  const { hanging, slow, healthy, fill } = await begin(t)
  hanging.answers = true
  await startWorker(t, service)
  await fill(slow.id)
  const taken = () =>
    service.database.exists(sql.unsafe`
      select from webhook_messages where team_id = ${slow.id} and status = 'queued'`)
  await until('all of them have proved themselves', async () => !(await taken()))
  hanging.answers = false
  await fill(slow.id)
  await until('they hold more slots than there are', () => hanging.open.size >= 32)
  await fill(healthy.team.id)
  await until('the other has all', () => healthy.receiver.received.length >= EVENTS)
  t.ok(hanging.open.size > 0, 'they still hang')
  hanging.end()
})

t.test('endpoints whose names have no answer keep nothing from others, nor from mail', async (t) => {
  const dns = await startDns(t)
  dns.silent = /slow\.test$/
  const { slow, healthy, fill } = await begin(t, (nth) => `https://h${nth}.slow.test/`)
  const url = healthy.receiver.url.replace('127.0.0.1', 'localhost')
  await cli.json(['webhook', 'remove', healthy.team.id, healthy.endpoint.id])
  await cli.json(['webhook', 'add', healthy.team.id, '--url', url])
  await fill(slow.id)
  const sink = await startSmtpSink(t)
  await startWorker(t, service, {
    // A name, to be looked up for each new connection.
    smtp_url: sink.url.replace('127.0.0.1', 'localhost'),
    webhooks: {
      concurrency: 32,
      allowed: networksOf(LOOPBACK.split(',')),
      resolve: createNames(dns.address).addresses,
      pauses: [1, 1, 1, 1, 1, 1],
    },
  })
  await until('each of the names has been asked for', () => new Set(dns.asked).size === HANGING)
  const begun = Date.now()
  await fill(healthy.team.id)
  await send(healthy.team.key)
  await until('the mail is out', () => sink.messages().length === 1)
  await until('the other has all', () => healthy.receiver.received.length > EVENTS)
  t.ok(Date.now() - begun < 10_000, 'within the time that one of them hangs')
  await until('those that hang have failed, and say why', () =>
    service.database.exists(sql.unsafe`
      select from webhook_events where team_id = ${slow.id} and detail like 'no name server answered%'`),
  )
})
