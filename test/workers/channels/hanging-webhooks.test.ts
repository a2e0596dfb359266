/**
 * Hanging endpoints don't affect others: ten that never respond, or whose names don't resolve, and one that
 * works.
 */
import { createServer, type ServerResponse } from 'node:http'
import { sql } from 'slonik'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { createNames } from '../../../db/process/dns.ts'
import { LOOPBACK, networksIn } from '../../../db/process/public-address.ts'
import { adminCli } from '../../support/admin.ts'
import { startDns } from '../../support/dns.ts'
import { portOf } from '../../support/port.ts'
import { storeEmails } from '../../support/reports.ts'
import { startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { beginWebhooks, happen } from '../../support/webhooks.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const rows = { database: await openDatabase(service.url, { size: 2 }) }
t.teardown(() => rows.database.end())
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: LOOPBACK })

const HANGING = 10
const EVENTS = 40

/** Starts a server that responds, or accepts requests and never responds. */
async function startHanging(t: Test) {
  const open = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    request.resume()
    if (hanging.answers) response.writeHead(204).end()
    else open.add(response.once('close', () => open.delete(response)))
  })
  /** Responds from now on, and drops open requests. */
  const end = (): void => {
    hanging.answers = true
    server.closeAllConnections()
  }
  const hanging = { url: '', answers: false, open, end }
  hanging.url = `http://127.0.0.1:${await portOf(t, server)}/`
  return hanging
}

/**
 * Creates a team with ten endpoints at a hanging server, or at the given URLs, and another team with a
 * working one.
 */
async function begin(t: Test, urlOf?: (nth: number) => string) {
  const hanging = await startHanging(t)
  const { team: slow, endpoint } = await beginWebhooks(t, { service, cli })
  await cli.json(['webhook', 'remove', slow.id, endpoint.id])
  for (let nth = 0; nth < HANGING; nth++)
    await cli.json(['webhook', 'add', slow.id, '--url', urlOf?.(nth) ?? hanging.url])
  const healthy = await beginWebhooks(t, { service, cli })
  /** All at once. Otherwise the first might hang too long before the last has started. */
  const fill = async (team_id: string) => {
    const ids = await storeEmails(rows, team_id, Array(EVENTS).fill(['a@example.org']))
    await happen(service, ...ids.map((email_id) => ({ team_id, email_id, kind: 'delivered' as const })))
  }
  return { hanging, slow, healthy, fill }
}

const send = (key: string) =>
  service.call('POST', '/v1/emails', {
    key,
    body: { from: 'hello@example.com', to: ['b@example.org'], subject: 'Hello', html: '<p>Hello</p>' },
  })

t.test('endpoints that never respond delay neither others nor email', async (t) => {
  const { hanging, slow, healthy, fill } = await begin(t)
  await fill(slow.id)
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('each of them has a request that hangs', () => hanging.open.size === HANGING)
  await fill(healthy.team.id)
  await send(healthy.team.key)
  // They hang for 15 s, and all of this arrives in the meantime.
  await until('the other has all', () => healthy.receiver.received.length > EVENTS)
  t.equal(sink.messages().length, 1)
  t.ok(hanging.open.size > 0)
  hanging.end()
})

t.test('endpoints that stop responding while busy return their slots', async (t) => {
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

t.test('endpoints whose names don’t resolve delay neither others nor email', async (t) => {
  const dns = await startDns(t)
  dns.silent = /slow\.test$/
  const { slow, healthy, fill } = await begin(t, (nth) => `https://h${nth}.slow.test/`)
  const url = healthy.receiver.url.replace('127.0.0.1', 'localhost')
  await cli.json(['webhook', 'remove', healthy.team.id, healthy.endpoint.id])
  await cli.json(['webhook', 'add', healthy.team.id, '--url', url])
  await fill(slow.id)
  const sink = await startSmtpSink(t)
  await startWorker(t, service, {
    // A name that is looked up for each new connection.
    smtp_url: sink.url.replace('127.0.0.1', 'localhost'),
    webhooks: {
      concurrency: 32,
      allowed: networksIn(LOOPBACK.split(',')),
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
  t.ok(Date.now() - begun < 30_000, 'before those that hang have failed')
  await until('those that hang have failed, and say why', () =>
    service.database.exists(sql.unsafe`
      select from webhook_events where team_id = ${slow.id} and detail like 'no name server responded%'`),
  )
})
