/** The metrics of the fleet: any process reports what all of them have counted, in Prometheus's format. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { sql } from 'slonik'
import { createMetrics } from '../../../../db/process/metrics.ts'
import { exposition } from '../../../../db/stats/fleet/exposition.ts'
import { liveProcesses } from '../../../../db/stats/fleet/fleet.sql.ts'
import { joinFleet } from '../../../../db/stats/fleet/fleet.ts'
import { testDatabase } from '../../../support/database.ts'
import { startDatabaseProxy } from '../../../support/database-proxy.ts'
import { silentLog } from '../../../support/log.ts'
import { openPool } from '../../../support/pool.ts'
import { programMissing } from '../../../support/programs.ts'
import t, { type Test } from '../../../support/tap.ts'

async function open(t: Test, url?: string) {
  const database = await openPool(t, url ?? (await testDatabase(t)).url, { size: 3 })
  return database
}

/** A process that only reports when the test calls it. */
function join(database: Awaited<ReturnType<typeof open>>, kind: 'web' | 'worker') {
  const metrics = createMetrics()
  const role = { queues: kind === 'worker' ? ['deliver-email'] : [] }
  const member = joinFleet(
    { database, metrics, log: silentLog },
    { kind, limit: 3, role, interval: 3_600_000 },
  )
  return { metrics, member }
}

t.test('any process reports the counts of all, including ended ones', async (t) => {
  const database = await open(t)
  const web = join(database, 'web')
  const worker = join(database, 'worker')
  web.metrics.count('heliograph_accepted_total', { channel: 'email' }, 2)
  await web.member.flush()
  web.metrics.count('heliograph_accepted_total', { channel: 'email' })
  worker.metrics.count('heliograph_accepted_total', { channel: 'email' }, 4)
  for (const seconds of [0.02, 0.3, 700]) {
    worker.metrics.observe(
      'heliograph_delivery_seconds',
      { channel: 'email', provider: 'smtp', outcome: 'accepted' },
      seconds,
    )
  }
  await worker.member.leave()
  await web.member.flush()
  const text = await exposition(database)
  t.match(text, /^heliograph_accepted_total\{channel="email"\} 7$/m)
  const labels = 'channel="email",provider="smtp",outcome="accepted"'
  const bucket = (le: string, count: number) =>
    `heliograph_delivery_seconds_bucket{${labels},le="${le}"} ${count}\n`
  for (const [le, count] of [
    ['0.01', 0],
    ['0.05', 1],
    ['0.5', 2],
    ['600', 2],
    ['+Inf', 3],
  ] as const) {
    t.ok(text.includes(bucket(le, count)), bucket(le, count))
  }
  t.ok(text.includes(`heliograph_delivery_seconds_count{${labels}} 3\n`))
  t.ok(text.includes(`heliograph_delivery_seconds_sum{${labels}} 700.32\n`))
  t.match(text, /^heliograph_processes\{process="web"\} 1\nheliograph_processes\{process="worker"\} 0$/m)
  await web.member.leave()
})

t.test('reports counts from an outage once afterwards', async (t) => {
  const { url } = await testDatabase(t)
  const proxy = await startDatabaseProxy(t, url)
  const database = await open(t, proxy.url)
  const { metrics, member } = join(database, 'web')
  await member.flush()
  metrics.count('heliograph_replayed_total', { channel: 'email' }, 3)
  proxy.cut()
  await t.rejects(member.flush())
  proxy.restore()
  metrics.count('heliograph_replayed_total', { channel: 'email' })
  await member.flush()
  await member.flush()
  t.match(await exposition(database), /^heliograph_replayed_total\{channel="email"\} 4$/m)
  t.equal(await proxy.during(() => member.flush()), 1, 'a report is one statement, whatever is in it')
  await member.leave()
})

t.test('a process without heartbeats no longer counts', async (t) => {
  const database = await open(t)
  const { member } = join(database, 'worker')
  await member.flush()
  t.equal((await liveProcesses(database, 20)).length, 1)
  await database.query(sql.unsafe`update processes set seen_at = now() - interval '1 minute'`)
  t.equal((await liveProcesses(database, 20)).length, 0)
  t.match((await liveProcesses(database, 3_600))[0], { queues: ['deliver-email'] })
  await member.leave()
  t.equal((await liveProcesses(database, 3_600)).length, 0)
})

t.test('promtool accepts the metrics', async (t) => {
  const missing = await programMissing('promtool', 'prometheus')
  if (missing) return void t.plan(0, missing)
  const database = await open(t)
  const { metrics, member } = join(database, 'web')
  metrics.count('heliograph_rejected_total', { code: 'a "quoted" \\ code\n' })
  metrics.observe('heliograph_http_request_seconds', { method: 'GET', route: '/', status: 200 }, 0.001)
  await member.flush()
  const promtool = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
  const said: Buffer[] = []
  for (const stream of [promtool.stdout, promtool.stderr]) stream.on('data', (chunk) => said.push(chunk))
  promtool.stdin.end(await exposition(database))
  const [code] = await once(promtool, 'close')
  t.equal(Buffer.concat(said).toString(), '')
  t.equal(code, 0)
  await member.leave()
})
