/** The reason of each kind of 503, in its log line and in the metric. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { pino } from 'pino'
import { sql } from 'slonik'
import { createApp, ROUTES } from '../../../api/app.ts'
import type { Deps } from '../../../api/deps.ts'
import { createSns } from '../../../api/hooks/sns.ts'
import { createBodies } from '../../../api/http/bodies.ts'
import { BODY_BUDGET } from '../../../api/http/body-budget.ts'
import { createParser } from '../../../api/http/parser.ts'
import { PARSER_THREAD } from '../../../api/v1/routes.ts'
import { lockAccount } from '../../../db/accounts/teams/limits.ts'
import { logOptions } from '../../../db/process/log.ts'
import { createMetrics } from '../../../db/process/metrics.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { hold } from '../../support/held.ts'
import { openPool } from '../../support/pool.ts'
import {
  anEmail,
  caller,
  listen,
  makeTeam,
  type Reply,
  startService,
  type TestTeam,
} from '../../support/service.ts'
import { aNotification, SNS_HOST, signed, startSns, TOPIC } from '../../support/sns.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const service = await startService(t, { upsertWait: 100 })
const { database } = service

/** Starts the service with other dependencies, and records its log and metrics. */
async function watched(t: Test, parts: Partial<Deps>, deadline?: number) {
  const lines: { level: number; status?: number; reason?: string }[] = []
  const log = pino(logOptions({ name: 'test', LOG_LEVEL: 'debug' }), {
    write: (line: string) => void lines.push(JSON.parse(line)),
  })
  const metrics = createMetrics()
  const base = await listen(t, createApp({ ...service.deps, ...parts, log, metrics }, ROUTES, deadline))
  return {
    base,
    call: caller(base),
    /** Checks the log line and the metric of the only 503 so far. */
    async hasReason(t: Test, reason: string, { status, body }: Pick<Reply, 'status' | 'body'>) {
      t.strictSame([status, body.error?.code], [503, 'unavailable'])
      const logged = () => lines.filter((line) => line.status === 503)
      await until('it is logged', () => logged().length > 0)
      t.match(logged(), [{ level: 40, code: 'unavailable', reason }])
      const counted = metrics.take().filter(({ figure }) => figure === 'heliograph_rejected_total')
      t.match(counted, [{ labels: `code="unavailable",reason="${reason}"`, values: [1] }])
    },
  }
}

/** Starts to send an email of 400,000 bytes, and never finishes. */
async function beginSend(t: Test, base: string, key: string): Promise<Pick<Reply, 'status' | 'body'>> {
  const headers = {
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    'Content-Length': 400_000,
  }
  const sent = request(`${base}/v1/emails`, { method: 'POST', headers, agent: false })
  t.teardown(() => sent.destroy())
  sent.write(Buffer.alloc(200_000))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const body = Buffer.concat(await response.toArray()).toString()
  return { status: response.statusCode ?? 0, body: JSON.parse(body) }
}

/** Waits until a transaction is blocked by a lock of another one. */
const lockAwaited = () =>
  until('a lock is waited for', () =>
    database.exists(sql.unsafe`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
  )

const deleteFiles = ({ id }: TestTeam) => database.query(sql.unsafe`delete from files where team_id = ${id}`)

t.test('database: it can’t be reached', async (t) => {
  const proxy = await startDatabaseProxy(t, service.url)
  const own = await watched(t, { database: await openPool(t, proxy.url) })
  proxy.cut()
  await own.hasReason(t, 'database', await own.call('GET', '/v1/plans'))
})

t.test('team_busy and busy: a call waited ten seconds', async (t) => {
  const [asking, sending] = [await makeTeam(service), await makeTeam(service)]
  // A batch that exceeds its lock timeout is repeated call by call.
  const slow = await startService(t, { url: service.url, lockTimeout: 3_500 })
  const [asked, others, last] = [await watched(t, {}), caller(slow.base), await watched(t, slow.deps)]
  const gate = Promise.withResolvers<void>()
  const held = Array.from({ length: 3 }, () =>
    service.deps.semaphores.statements.run(asking.id, () => gate.promise, 0),
  )
  const askedInVain = asked.call('GET', '/v1/contacts/nobody@example.org', { key: asking.key })

  const send = { key: sending.key, body: anEmail() }
  const commit = await hold(t, database, (tx) => lockAccount(tx, sending.id))
  const first = others('POST', '/v1/emails', send)
  await lockAwaited()
  const next = [others('POST', '/v1/emails', send), others('POST', '/v1/emails', send)]
  await first
  await last.hasReason(t, 'busy', await last.call('POST', '/v1/emails', send))
  await Promise.all(next)
  await commit()

  await asked.hasReason(t, 'team_busy', await askedInVain)
  gate.resolve()
  await Promise.all(held)
})

t.test('large_bodies: the capacity for large bodies is used up', async (t) => {
  const parser = createParser(PARSER_THREAD)
  t.teardown(parser.close)
  const team = await makeTeam(service)
  const own = await watched(t, {
    bodies: createBodies(parser, { ...BODY_BUDGET, perOwner: 500_000, patience: 200 }),
  })
  // One of them never ends and is closed at the end of the test.
  const [one, other] = [beginSend(t, own.base, team.key), beginSend(t, own.base, team.key)]
  for (const sent of [one, other]) sent.catch(() => {})
  await own.hasReason(t, 'large_bodies', await Promise.race([one, other]))
})

t.test('body_unread: parsing a body exceeds its time limit', async (t) => {
  const parser = createParser(PARSER_THREAD, { timeLimit: 1 })
  t.teardown(parser.close)
  const team = await makeTeam(service)
  const own = await watched(t, { bodies: createBodies(parser) })
  const body = anEmail({ html: 'x'.repeat(1_000_000) })
  await own.hasReason(t, 'body_unread', await own.call('POST', '/v1/emails', { key: team.key, body }))
})

t.test('timeout: the response exceeds the deadline', async (t) => {
  const team = await makeTeam(service)
  const own = await watched(t, {}, 300)
  const commit = await hold(t, database, (tx) => lockAccount(tx, team.id))
  await own.hasReason(t, 'timeout', await own.call('POST', '/v1/emails', { key: team.key, body: anEmail() }))
  await commit()
})

t.test('upload_timeout: an upload is deleted before it is published', async (t) => {
  const team = await makeTeam(service)
  const own = await watched(t, {})
  const commit = await hold(t, database, (tx) => lockAccount(tx, team.id))
  const sending = own.call('POST', '/v1/attachments?filename=a.pdf', { key: team.key, raw: 'a file' })
  await lockAwaited()
  await deleteFiles(team)
  await commit()
  await own.hasReason(t, 'upload_timeout', await sending)
})

t.test('conflict: an email’s attachment is deleted during the send', async (t) => {
  const team = await makeTeam(service)
  const own = await watched(t, {})
  const file = await service.call('POST', '/v1/attachments?filename=a.pdf', { key: team.key, raw: 'a file' })
  const commit = await hold(t, database, (tx) => lockAccount(tx, team.id))
  const body = anEmail({ attachments: [{ attachment_id: file.body.id }] })
  const sending = own.call('POST', '/v1/emails', { key: team.key, body })
  await lockAwaited()
  await deleteFiles(team)
  await commit()
  await own.hasReason(t, 'conflict', await sending)
})

t.test('bulk_pending: no worker processes the upsert in time', async (t) => {
  const team = await makeTeam(service)
  const own = await watched(t, {})
  const body = { contacts: [{ email: 'a@example.org' }] }
  await own.hasReason(t, 'bulk_pending', await own.call('POST', '/v1/contacts/bulk', { key: team.key, body }))
})

t.test('sns_certificate: the certificate of SNS can’t be fetched', async (t) => {
  const sns = await startSns(t, makeCertificate([SNS_HOST]))
  sns.onRequest((_request, response) => {
    response.writeHead(500).end()
    return true
  })
  const gate = createSns({ topics: [TOPIC], agent: sns.agent })
  const own = await watched(t, { hooks: { ...service.deps.hooks, sns: gate } })
  const raw = signed(sns.certificate, aNotification())
  await own.hasReason(t, 'sns_certificate', await own.call('POST', '/hooks/ses', { raw }))
})
