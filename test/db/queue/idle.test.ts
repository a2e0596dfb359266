/** Counts the statements of a worker without work, few for any number of queues and schedules. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { releaseAll } from '../../../db/delivery/schedule.ts'
import { writeToDisk } from '../../../db/maintenance/restore-guard/restore-guard.sql.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { SCHEDULES, type ScheduleName, scheduleQueue } from '../../../db/queue/jobs.ts'
import { createProducer } from '../../../db/queue/producer.ts'
import { keysOf } from '../../../db/validation/keys.ts'
import { testDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { openPool } from '../../support/pool.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const LOOKS = 10
/** In seconds. Less than the time after which pg-boss would look by itself. */
const BEFORE_THE_FALLBACK = 40

async function begin(t: Test) {
  const { url } = await testDatabase(t)
  const proxy = await startDatabaseProxy(t, url)
  const database = await openPool(t, proxy.url, { size: 1 })
  return { proxy, database }
}

t.test('queues and schedules share their polls, and due jobs start immediately', async (t) => {
  const { proxy, database } = await begin(t)
  const consumer = await openConsumer(proxy.url, {
    connections: 2,
    onError: (error) => t.fail(error.message),
  })
  t.teardown(() => consumer.stop(0))
  const ran: ScheduleName[] = []
  for (const name of keysOf(SCHEDULES)) await consumer.schedule(name, async () => void ran.push(name))
  const claims = consumer.claims('deliver-email')
  t.teardown(() => claims.close())
  claims.idle()
  const texts: string[] = []
  await until('it has looked', async () => {
    texts.push(...(await proxy.textsDuring(() => sleep(500))))
    return texts.filter((text) => text.includes('asked (name)')).length >= LOOKS
  })
  const fetches = texts.filter((text) => text.includes('next AS (')).length
  t.ok(
    fetches < LOOKS,
    `${fetches} fetches for ${Object.keys(SCHEDULES).length} schedules beside ${LOOKS} looks`,
  )
  ran.length = 0
  const queue = scheduleQueue('purge-sessions')
  await database.query(sql.unsafe`insert into pgboss.job (name, policy) values (${queue}, 'exclusive')`)
  await until('it runs', () => ran.includes('purge-sessions'), BEFORE_THE_FALLBACK)
})

t.test('releaseAll and writeToDisk each run one statement', async (t) => {
  const { proxy, database } = await begin(t)
  const queue = createProducer()
  await releaseAll({ database, queue })
  t.equal(await proxy.during(() => releaseAll({ database, queue })), 1)
  t.equal(await proxy.during(() => writeToDisk(database)), 1)
})
