/** Tests the maintenance that workers run. They look for lost jobs every 2 s, and do the rest once a minute. */
import { randomUUID } from 'node:crypto'
import { sql } from 'slonik'
import { object, string } from 'yup'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { insertJobs } from '../../../db/queue/insert.sql.ts'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const JOB = 'check-email'
/** In seconds. Enough for many checks, but less than the time between two rounds of maintenance. */
const BEFORE_THE_NEXT_ROUND = 25

t.test('a worker runs maintenance at its start', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openDatabase(url, { size: 2 })
  const consumer = await openConsumer(url, { connections: 2, onError: (error) => t.fail(error.message) })
  t.teardown(async () => {
    await consumer.stop(0)
    await database.end()
  })
  await until('it has looked after its queues', () =>
    database.exists(
      sql.type(object())`select from pgboss.queue where name = ${JOB} and monitor_on is not null`,
    ),
  )
  const id = randomUUID()
  await insertJobs(database, [{ name: JOB, id, data: { check_id: id }, priority: 0, group_id: null }])
  await database.query(sql.unsafe`
    update pgboss.job set state = 'active', started_on = now(), heartbeat_on = now() - interval '1 minute'
    where name = ${JOB} and id = ${id}`)
  const isTakenBack = async () =>
    (await database.oneFirst(sql.type(object({ state: string().defined() }))`
      select state::text from pgboss.job where name = ${JOB} and id = ${id}`)) === 'retry'
  await until('its job waits for another worker', isTakenBack, BEFORE_THE_NEXT_ROUND)
})
