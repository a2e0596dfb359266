/** Checks the assumptions of db/queue/pgboss.sql.ts against the installed version of pg-boss. */
import { randomUUID } from 'node:crypto'
import { PgBoss } from 'pg-boss'
import { sql } from 'slonik'
import { boolean, mixed, number, string } from 'yup'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { nameRow, row } from '../../../db/postgres/rows.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { insertJobs } from '../../../db/queue/insert.sql.ts'
import { openJob } from '../../../db/queue/jobs.sql.ts'
import { deadLetterQueue, JOBS, type JobName, SCHEDULES, scheduleQueue } from '../../../db/queue/jobs.ts'
import { isAnyLost } from '../../../db/queue/maintenance.sql.ts'
import { COLUMNS, deadReason, IN_LOOP, SCHEMA, STATES, touchedIds } from '../../../db/queue/pgboss.sql.ts'
import { keysOf } from '../../../db/validation/keys.ts'
import { testDatabase } from '../../support/database.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

/** A migrated database with pg-boss, which runs nothing by itself. */
async function begin(t: Test) {
  const { url } = await testDatabase(t)
  const database = await openDatabase(url, { size: 2 })
  const options = { schema: SCHEMA, migrate: false, supervise: false, schedule: false, max: 2 }
  const boss = new PgBoss({ connectionString: url, ...options })
  const faults: Error[] = []
  boss.on('error', (fault) => void faults.push(fault))
  await boss.start()
  t.teardown(async () => {
    await boss.stop({ graceful: false })
    await database.end()
  })
  return { url, database, boss, faults }
}

const JOB = 'check-email'

/** Stores a job. @returns its ID. */
async function aJob({ database }: Awaited<ReturnType<typeof begin>>, priority = 0): Promise<string> {
  const id = randomUUID()
  await insertJobs(database, [{ name: JOB, id, data: { check_id: id }, priority, group_id: null }])
  return id
}

const rowOf = ({ database }: Awaited<ReturnType<typeof begin>>, id: string) =>
  database.one(sql.type(row({ state: string(), retry_count: number(), retry_limit: number() }))`
    select state::text, retry_count, retry_limit from pgboss.job where name = ${JOB} and id = ${id}`)

t.test("its tables have our statements' columns and types", async (t) => {
  const { database } = await begin(t)
  const there = await database.any(sql.type(row({ table: string(), name: string(), type: string() }))`
    select attrelid::regclass::text as table, attname as name, format_type(atttypid, atttypmod) as type
    from pg_attribute where attrelid = any(${sql.array(
      Object.keys(COLUMNS).map((table) => `${SCHEMA}.${table}`),
      'text',
    )}::regclass[]) and attnum > 0`)
  const types = new Map(there.map(({ table, name, type }) => [`${table}.${name}`, type]))
  for (const [table, columns] of Object.entries(COLUMNS)) {
    for (const [name, type] of Object.entries(columns))
      t.equal(types.get(`${SCHEMA}.${table}.${name}`), type, `${table}.${name}`)
  }
})

t.test('its states have the order that ours rely on', async (t) => {
  const { database } = await begin(t)
  const states = await database.anyFirst(sql.type(row({ state: string() }))`
    select unnest(enum_range(null::pgboss.job_state))::text as state`)
  t.strictSame(states, STATES)
})

t.test('inserted jobs equal those of pg-boss in every queue', async (t) => {
  const { database, boss } = await begin(t)
  for (const name of Object.keys(JOBS) as JobName[]) {
    const [ours, theirs] = [randomUUID(), randomUUID()]
    const rows = await database.transaction(async (tx) => {
      const data = { team_id: randomUUID() }
      const db = {
        executeSql: async (text: string, values: unknown[] = []) => {
          const { rows } = await tx.query({ ...sql.unsafe`select`, sql: text, values: values as never })
          return { rows: [...rows] }
        },
      }
      await boss.insert(name, [{ id: theirs, data, priority: -7, group: { id: 'one' } }], { db })
      await insertJobs(tx, [{ name, id: ours, data, priority: -7, group_id: 'one' }])
      return tx.any(sql.type(row({ id: string(), row: mixed<Record<string, unknown>>() }))`
        select id, to_jsonb(j) - 'id' as row from pgboss.job j where id in (${ours}, ${theirs})`)
    })
    const of = (id: string) => rows.find((row) => row.id === id)?.row
    t.ok(of(theirs), name)
    t.strictSame(of(ours), of(theirs), name)
  }
})

t.test('inserting a job into a missing queue fails', async (t) => {
  const { database } = await begin(t)
  const job = { name: 'no-such-queue' as JobName, id: randomUUID(), data: {}, priority: 0, group_id: null }
  await t.rejects(insertJobs(database, [job]))
})

t.test('the retry count is the attempt number', async (t) => {
  const place = await begin(t)
  const { boss, database } = place
  const id = await aJob(place)
  const limit = JOBS[JOB].options.retryLimit
  for (let attempt = 0; attempt <= limit; attempt++) {
    await database.query(sql.unsafe`update pgboss.job set start_after = now() where id = ${id}`)
    const [job] = await boss.fetch(JOB)
    t.match(job, { id })
    t.strictSame(await rowOf(place, id), { state: 'active', retry_count: attempt, retry_limit: limit })
    await boss.fail(JOB, [{ id, retryCount: attempt }] as never, { reason: 'no' })
    t.match(await rowOf(place, id), { state: attempt < limit ? 'retry' : 'failed', retry_count: attempt })
  }
  const dead = await database.one(
    sql.type(
      row({ name: string(), source_id: string(), reason: string() }),
    )`select name, source_id, ${deadReason} as reason from pgboss.job where source_id = ${id}`,
  )
  t.strictSame(dead, { name: deadLetterQueue(JOB), source_id: id, reason: 'no' })
  t.match(await openJob(database, JOB, id), { dead: true, active: false })
})

t.test('the dead letter of a lost job has a reason', async (t) => {
  const place = await begin(t)
  const { boss, database } = place
  const id = await aJob(place)
  await boss.fetch(JOB)
  await database.query(sql.unsafe`
    update pgboss.job set retry_limit = 0, heartbeat_on = now() - interval '1 hour' where id = ${id}`)
  await boss.supervise(JOB)
  const reason = await database.oneFirst(sql.type(row({ reason: string() }))`
    select ${deadReason} as reason from pgboss.job where source_id = ${id}`)
  t.match(reason, /heartbeat/)
})

t.test("finds lost jobs like pg-boss's supervision", async (t) => {
  const place = await begin(t)
  const { boss, database } = place
  const isLost = () => isAnyLost((text, values) => boss.getDb().executeSql(text, values))
  const id = await aJob(place)
  t.equal(await isLost(), false, 'it waits')
  for (const late of ["heartbeat_on = now() - interval '11 s'", "started_on = now() - interval '1 day'"]) {
    await database.query(sql.unsafe`update pgboss.job set start_after = now() where id = ${id}`)
    await boss.fetch(JOB)
    t.equal(await isLost(), false, 'it has just begun')
    await database.query({ ...sql.unsafe``, sql: `update pgboss.job set ${late} where state = 'active'` })
    t.equal(await isLost(), true, late)
    await boss.supervise(JOB)
    t.match(await rowOf(place, id), { state: 'retry' }, late)
    t.equal(await isLost(), false, 'it is ended')
    await database.query(sql.unsafe`update pgboss.queue set monitor_on = null, monitor_claim_on = null`)
  }
})

t.test('fetches the highest priority first, then the oldest', async (t) => {
  const place = await begin(t)
  const [first, second] = [await aJob(place), await aJob(place)]
  const [late, early] = [await aJob(place, -1), await aJob(place, 1)]
  const order: string[] = []
  for (const _ of [1, 2, 3, 4]) order.push(...(await place.boss.fetch(JOB)).map(({ id }) => id))
  t.strictSame(order, [early, first, second, late])
})

t.test('a touch returns the jobs that are still ours', async (t) => {
  const place = await begin(t)
  const [held, lost] = [await aJob(place), await aJob(place)]
  const jobs = await place.boss.fetch(JOB, { batchSize: 2 })
  await place.database.query(sql.unsafe`update pgboss.job set retry_count = 1 where id = ${lost}`)
  const attempts = jobs.map(({ id }) => ({ id, retryCount: 0 }))
  const answer = await place.boss.touch(JOB, attempts as never)
  t.strictSame([...touchedIds(answer)], [held])
})

t.test('removes the loop from an error message', async (t) => {
  const { boss, database, faults } = await begin(t)
  await boss.work('count-figures', { pollingIntervalSeconds: 0.5 }, async () => {})
  await database.query(sql.unsafe`alter table pgboss.job_common rename to hidden`)
  await until('it says so', () => faults.length > 0)
  await boss.offWork('count-figures')
  await database.query(sql.unsafe`alter table pgboss.hidden rename to job_common`)
  t.match(faults[0]?.message, /^relation .* does not exist \(Queue: count-figures/)
  t.equal(faults[0]?.message.indexOf(IN_LOOP), faults[0]?.message.indexOf(' (Queue: count-figures'))
})

t.test('table names leave space for index names', async (t) => {
  const { database } = await begin(t)
  const tables = await database.any(sql.type(row({ name: string(), table_name: string(), valid: boolean() }))`
    select q.name, q.table_name, coalesce(bool_and(i.indisvalid) and count(*) = 3, false) as valid
    from pgboss.queue q left join pg_index i
      on i.indexrelid = any(array(
        select to_regclass('pgboss.' || q.table_name || suffix) from unnest(array['_busy', '_due', '_dlq']) suffix))
    group by 1, 2`)
  t.ok(tables.length > Object.keys(JOBS).length)
  for (const { name, table_name, valid } of tables) {
    t.ok(`${table_name}_group`.length <= 63, `${name}: ${table_name}`)
    t.ok(valid, name)
  }
})

t.test('renamed scheduled jobs share the queues of 0.1.0', async (t) => {
  const { url, boss, database } = await begin(t)
  const created = await database.anyFirst(sql.type(nameRow)`select name from pgboss.queue`)
  const of010 = ['count-figures', 'forget-messages', 'forget-reports', 'forget-sessions', 'forget-upserts']
  const renamed = keysOf(SCHEDULES).filter((name) => scheduleQueue(name) !== name)
  t.strictSame(created.filter((name) => [...of010, ...renamed].includes(name)).sort(), of010)
  await boss.send('forget-sessions', {})
  const consumer = await openConsumer(url, { connections: 2, onError: (error) => t.fail(error.message) })
  t.teardown(() => consumer.stop(1_000))
  let runs = 0
  await consumer.schedule('purge-sessions', async () => {
    runs += 1
  })
  await until('the waiting job has run', () => runs === 1)
  const scheduled = await database.anyFirst(sql.type(nameRow)`select name from pgboss.schedule`)
  t.strictSame(scheduled, ['forget-sessions'])
})
