/** The status of queues: read with the index of fetches, with a timeout, and once for concurrent callers. */
import { sql } from 'slonik'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { createQueueStatus, queueStatus } from '../../../db/queue/jobs.sql.ts'
import { testDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)

t.test('concurrent callers share one query', async (t) => {
  const proxy = await startDatabaseProxy(t, url)
  const database = await openPool(t, proxy.url, { size: 2 })
  const look = createQueueStatus(database, 60_000)
  const first = await look()
  t.equal(await proxy.during(() => Promise.all([look(), look(), look()])), 0)
  t.strictSame(await look(), first)
  t.ok((await proxy.during(() => createQueueStatus(database, 0)())) > 0)
})

t.test("a query has a timeout, and errors aren't cached", async (t) => {
  const [database, other] = await Promise.all([openDatabase(url), openDatabase(url)])
  t.teardown(() => Promise.all([database.end(), other.end()]))
  const look = createQueueStatus(database, 60_000)
  await other.transaction(async (tx) => {
    await tx.query(sql.unsafe`lock table pgboss.queue in access exclusive mode`)
    await t.rejects(look(), /statement timeout/)
  })
  t.ok((await look()).length > 0)
})

t.test('counts ready and deferred jobs separately', async (t) => {
  const database = await openPool(t, url)
  await database.query(sql.unsafe`
    insert into pgboss.job (id, name, data, start_after)
    select gen_random_uuid(), 'upsert-contacts', '{}', now() + late * interval '1 hour'
    from unnest(array[0, 0, 1]) late`)
  const status = await queueStatus(database)
  const upserts = status.find(({ queue }) => queue === 'upsert-contacts')
  t.match(upserts, { ready: 2, deferred: 1, active: 0, dead: 0, oldest_ready_seconds: 0 })
})
