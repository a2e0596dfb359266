/** The endpoints for operators: health, metrics, and the signal for scaling workers. */
import { pino } from 'pino'
import { sql } from 'slonik'
import { createApp } from '../../../api/app.ts'
import { watchDatabase } from '../../../db/maintenance/restore-guard/restore-guard.ts'
import { logOptions } from '../../../db/process/log.ts'
import { createMetrics } from '../../../db/process/metrics.ts'
import { createScale } from '../../../db/stats/fleet/scale.ts'
import about from '../../../package.json' with { type: 'json' }
import { startApi } from '../../support/api-process.ts'
import { anEmail, caller, HIREFIRE_TOKEN, listen, METRICS_TOKEN, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startProcess, until } from '../../support/worker.ts'

const { service, call, cli, team } = await world(t)

t.test('GET /metrics and /scale require the token and are 404 without one', async (t) => {
  const without = caller(
    await listen(t, createApp({ ...service.deps, tokens: { metrics: null, hirefire: null } })),
  )
  for (const path of ['/metrics', '/scale']) {
    t.equal((await call('GET', path)).status, 401)
    t.equal((await call('GET', path, { key: team.key })).status, 401)
    t.equal((await call('GET', path, { key: METRICS_TOKEN })).status, 200)
    t.equal((await without('GET', path, { key: METRICS_TOKEN })).status, 404)
  }
  t.equal((await without('GET', `/hirefire/${HIREFIRE_TOKEN}/info`)).status, 404)
})

t.test('GET /metrics counts requests, accepts, replays, rejections and queues', async (t) => {
  const emails = [anEmail({ idempotency_key: 'a' }), anEmail({ from: 'hello@unknown.test' }), anEmail()]
  await call('POST', '/v1/emails', { key: team.key, body: {} })
  await call('POST', '/v1/emails', { key: team.key, body: emails[0] })
  await call('POST', '/v1/emails', { key: team.key, body: emails[0] })
  await call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  const { headers, body } = await call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  for (const line of [
    'heliograph_http_request_seconds_count{method="POST",route="/v1/emails",status="400"} 1',
    'heliograph_http_request_seconds_count{method="POST",route="/v1/emails",status="200"} 1',
    'heliograph_accepted_total{channel="email"} 2',
    'heliograph_replayed_total{channel="email"} 2',
    'heliograph_rejected_total{code="bad_request"} 1',
    'heliograph_rejected_total{code="from_domain_not_verified"} 1',
    'heliograph_queue_jobs{queue="deliver-email",state="ready"} 2',
    'heliograph_queued_messages{channel="email",older_than_seconds="0"} 2',
    'heliograph_queued_messages{channel="email",older_than_seconds="60"} 0',
    'heliograph_reports{state="parked"} 0',
    'heliograph_processes{process="web"} 1',
    `heliograph_build_info{process="web",version="${about.version}",node="${process.version}"} 1`,
  ]) {
    t.ok(body.includes(`${line}\n`), line)
  }
  t.notMatch(body, new RegExp(`${team.id}|@|example`), 'no team and no address')
})

t.test('GET /scale and HireFire’s path report the same latency', async (t) => {
  await service.database.query(sql.unsafe`
    update pgboss.job set start_after = now() - interval '40 seconds', created_on = now() - interval '40 seconds'`)
  const fresh = caller(await listen(t, createApp({ ...service.deps, scale: createScale(service.database) })))
  const { body } = await fresh('GET', '/scale', { key: METRICS_TOKEN })
  t.match(body.workers, { ready: 2, active: 0, processes: 0, recommended: 1 })
  t.ok(body.workers.latency_seconds >= 40 && body.workers.latency_seconds < 100, 'of the oldest ready job')
  t.equal(body.queues['deliver-email'].ready, 2)
  const hirefire = await fresh('GET', `/hirefire/${HIREFIRE_TOKEN}/info`)
  t.strictSame(hirefire.body, [{ name: 'worker', value: body.workers.latency_seconds }])
  t.equal((await call('GET', '/hirefire/another-token-of-16/info')).status, 404)
})

t.test('a worker serves its health, and queue status lists it', async (t) => {
  const worker = await startProcess(t, 'workers/main.ts', {
    DATABASE_URL: service.url,
    HEALTH_PORT: '0',
    WORKER_QUEUES: 'ingest-report,upsert-contacts',
  })
  const ask = caller(`http://127.0.0.1:${worker.up.port}`)
  const running = { status: 200, body: { status: 'ok', version: about.version } }
  t.match(await ask('GET', '/health'), running)
  t.match(await call('GET', '/health'), running)
  t.equal((await ask('GET', '/ready')).status, 200)
  t.equal((await ask('GET', '/metrics')).status, 404)
  const onQueue = async (name: string) =>
    (await cli.json(['queue', 'status'])).find((each: { queue: string }) => each.queue === name).workers
  await until('its first sign of life', async () => (await onQueue('ingest-report')).length === 1)
  t.match(await onQueue('ingest-report'), [{ pid: worker.child.pid, seen_at: /Z$/ }])
  const { body } = await call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(
    body,
    `heliograph_build_info{process="worker",version="${about.version}",node="${process.version}"} 1\n`,
  )
  t.equal((await cli.run(['--version'])).stdout, `${about.version}\n`)
  t.strictSame(await onQueue('deliver-email'), [])
  worker.kill('SIGTERM')
  t.equal(await worker.exited, 0)
  t.strictSame(await onQueue('ingest-report'), [], 'a process that ends says so')
})

t.test('the documentation shows its version', async (t) => {
  t.match((await call('GET', '/openapi.json')).body.info, { version: about.version })
  t.match((await call('GET', '/docs')).body, `Version ${about.version}.`)
})

t.test('a process stores its last counts before it ends', async (t) => {
  const api = await startApi(t, service.url, { METRICS_TOKEN })
  await api.call('GET', '/v1/plans?locale=fr')
  t.equal((await api.call('GET', '/ready')).status, 200)
  api.kill('SIGTERM')
  await until('it drains', async () => (await api.call('GET', '/ready').catch(() => null))?.status !== 200)
  t.equal(await api.exited, 0)
  const { body } = await call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(body, /heliograph_http_request_seconds_count\{method="GET",route="\/v1\/plans",status="200"\} 1/)
})

t.test('GET /ready is 503 while the process drains', async (t) => {
  const draining = caller(await listen(t, createApp({ ...service.deps, isDraining: () => true })))
  t.match(await draining('GET', '/ready'), { status: 503, body: { error: { code: 'unavailable' } } })
  t.equal((await draining('GET', '/health')).status, 200)
})

t.test('log and metric have the reason of a 503', async (t) => {
  const lines: { level: number; code?: string; reason?: string }[] = []
  const log = pino(logOptions({ name: 'test', LOG_LEVEL: 'debug' }), {
    write: (line: string) => void lines.push(JSON.parse(line)),
  })
  const metrics = createMetrics()
  let full: string | null = null
  const deps = { ...service.deps, log, metrics, diskFault: () => full }
  const own = caller(await listen(t, createApp({ ...deps, isDraining: () => full === null })))
  const counted = () =>
    metrics.take().flatMap(({ figure, labels }) => (figure === 'heliograph_rejected_total' ? [labels] : []))
  t.equal((await own('GET', '/ready')).status, 503)
  t.match(lines.at(-1), { level: 40, status: 503, code: 'unavailable', reason: 'draining' })
  t.strictSame(counted(), ['code="unavailable",reason="draining"'])
  full = 'no space'
  t.equal((await own('GET', '/ready')).status, 503)
  t.match(lines.at(-1), { level: 40, code: 'unavailable', reason: 'not_ready' })
  t.strictSame(counted(), ['code="unavailable",reason="not_ready"'])
  await own('POST', '/v1/emails', { key: team.key, body: {} })
  t.match(lines.at(-1), { level: 30, code: 'bad_request' })
  t.notOk('reason' in (lines.at(-1) ?? {}))
  t.strictSame(counted(), ['code="bad_request"'], 'no other code has one')
})

t.test('notices when the database’s disk is full, and when not', async (t) => {
  const { database, log } = service.deps
  const full = Object.assign(new Error('could not write to file: No space left on device'), { code: '53100' })
  let fails = true
  const failing: typeof database = {
    ...database,
    query: (statement) =>
      fails && /work_mem/.test(statement.sql) ? Promise.reject(full) : database.query(statement),
  }
  const watch = await watchDatabase({ database: failing, log }, { every: 20, hold: 100, patience: 100 })
  t.teardown(() => watch.end())
  t.equal(watch.diskFault(), null)
  await until('it has noticed', async () => watch.diskFault()?.includes('No space left') === true)
  fails = false
  await until('there is space again', async () => watch.diskFault() === null)
})
