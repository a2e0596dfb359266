/** Claims: which worker has a job, and how jobs end, even if workers are killed or frozen. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import { row } from '../../../db/postgres/rows.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import type { FetchedJob } from '../../../db/queue/claims.ts'
import { jobEnd } from '../../../db/queue/jobs.sql.ts'
import type { End } from '../../../db/queue/jobs.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const { url } = await testDatabase(t)
const database = await openPool(t, url)
const queue = await openConsumer(url, { connections: 3, onError: () => {} })
t.teardown(() => queue.stop(1_000))
const claims = queue.claims('ingest-report')
t.teardown(() => claims.close())

const TEAM = '0190a1b2-0000-7000-8000-00000000a001'

type Job = FetchedJob<'ingest-report'>

const rowOf = (id: string) =>
  database.one(sql.type(row({ state: string(), attempt: number(), priority: number(), wait: number() }))`
    select state::text, retry_count as attempt, priority, extract(epoch from start_after - now()) as wait
    from pgboss.job where id = ${id} and name = 'ingest-report'`)
const end = (job: Job, how: End) => database.transaction((tx) => claims.settle(tx, new Map([[job, how]])))
const due = (id: string) =>
  database.query(sql.unsafe`update pgboss.job set start_after = now() where id = ${id}`)

let next = 0
async function claimed(): Promise<Job> {
  const report_id = `0190a1b2-0000-7000-8000-${String(++next).padStart(12, '0')}`
  await database.transaction((tx) => queue.enqueue(tx, 'ingest-report', [{ report_id }]))
  const [job] = await claims.fetch(1)
  if (!job) throw new Error('nothing was claimed')
  return job
}

t.test("a snoozed job keeps its priority and isn't a retry", async (t) => {
  const job = await claimed()
  await database.query(sql.unsafe`update pgboss.job set priority = 7 where id = ${job.id}`)
  await end(job, { end: 'snoozed', seconds: 100 })
  const row = await rowOf(job.id)
  t.match(row, { state: 'created', priority: 7 })
  t.ok(row.wait > 90 && row.wait <= 100)
  await due(job.id)
  const [again] = await claims.fetch(1)
  t.match(again, { id: job.id })
  await end(job, { end: 'completed' })
  t.match(await rowOf(job.id), { state: 'active' }, 'an attempt that is over ends nobody else’s')
  await end(again as Job, { end: 'completed' })
  t.equal(await jobEnd(database, 'ingest-report', job.id), null, 'what is done is not kept')
})

t.test("keeps a completed job's output for its caller", async (t) => {
  const job = await claimed()
  await end(job, { end: 'completed', output: { sender: null } })
  t.match(await jobEnd(database, 'ingest-report', job.id), { state: 'completed', output: { sender: null } })
})

t.test("a worker's death delays a background job by seconds", async (t) => {
  const payload = { team_id: TEAM, broadcast_id: '0190a1b2-0000-7000-8000-00000000b001' }
  await database.transaction((tx) => queue.enqueue(tx, 'expand-broadcast', [payload]))
  const turns = queue.claims('expand-broadcast')
  for (let turn = 0; turn < 20; turn++) {
    const [job] = await turns.fetch(1)
    if (!job) throw new Error('nothing was claimed')
    await database.transaction((tx) => turns.settle(tx, new Map([[job, { end: 'snoozed', seconds: 0 }]])))
    turns.release([job])
  }
  await turns.fetch(1)
  turns.end()
  await database.query(sql.unsafe`
    update pgboss.job set heartbeat_on = now() - interval '1 minute' where id = ${payload.broadcast_id}`)
  const job = () =>
    database.one(sql.type(row({ state: string(), wait: number() }))`
      select state::text, extract(epoch from start_after - now()) as wait
      from pgboss.job where id = ${payload.broadcast_id} and name = 'expand-broadcast'`)
  await until('its worker counts as dead', async () => (await job()).state === 'retry')
  t.ok((await job()).wait <= 5)
})

t.test('a retried job waits for its delay', async (t) => {
  const job = await claimed()
  await end(job, { end: 'again', seconds: 600 })
  const row = await rowOf(job.id)
  t.match(row, { state: 'retry' })
  t.ok(row.wait > 590 && row.wait <= 600)
})

t.test('a failed job becomes a dead letter with its reason', async (t) => {
  const job = await claimed()
  await end(job, { end: 'given_up', reason: 'words' })
  t.match(await rowOf(job.id), { state: 'failed' })
  const found = await database.any(sql.type(row({ reason: string() }))`
    select source_output ->> 'reason' as reason from pgboss.job where source_id = ${job.id}`)
  t.equal(found.map(({ reason }) => reason).join(), 'words')
})

t.test('ends are part of their transaction', async (t) => {
  const job = await claimed()
  await database
    .transaction(async (tx) => {
      await claims.settle(tx, new Map([[job, { end: 'completed' }]]))
      throw new Error('undone')
    })
    .catch(() => {})
  t.match(await rowOf(job.id), { state: 'active' })
  await end(job, { end: 'completed' })
})

t.test('a wake-up without an idle caller ends the next wait', async (t) => {
  const waits: Promise<void>[] = []
  let over = 0
  const wait = async () => {
    waits.push(
      claims.idle().then(() => {
        over += 1
      }),
    )
    await new Promise((resolve) => setImmediate(resolve))
  }
  claims.wake()
  claims.wake()
  await wait()
  t.equal(over, 1, 'one that was looking for work just then looks once more')
  await wait()
  t.equal(over, 1)
  claims.wake()
  await Promise.all(waits)
})

t.test('a wake-up ends one wait, a full claim another', async (t) => {
  let over = 0
  const waits = [1, 2].map(() =>
    claims.idle().then(() => {
      over += 1
    }),
  )
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  claims.wake()
  await settled()
  t.equal(over, 1)
  const job = await claimed()
  await settled()
  t.equal(over, 2)
  await end(job, { end: 'completed' })
  await Promise.all(waits)
})

t.test('a heartbeat detects a claim that another process has', async (t) => {
  const job = await claimed()
  t.ok(claims.isHeld(job))
  await database.query(sql.unsafe`update pgboss.job set retry_count = retry_count + 1 where id = ${job.id}`)
  await until('the heartbeat has shown it', () => !claims.isHeld(job))
})

t.test('a process frozen for 9 s has no claims', async (t) => {
  const job = await claimed()
  const { now } = performance
  t.teardown(() => {
    performance.now = now
  })
  performance.now = () => now.call(performance) + 9_000
  t.notOk(claims.isHeld(job), 'nothing has confirmed it for 9 s')
  performance.now = now
  t.ok(claims.isHeld(job))
})
