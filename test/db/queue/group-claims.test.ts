/** Claims from a queue with groups: from each group up to its capacity. */
import { sql } from 'slonik'
import { openConsumer } from '../../../db/queue/boss.ts'
import type { FetchedJob } from '../../../db/queue/claims.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t, { type Test } from '../../support/tap.ts'

/** Two workers on an empty queue. */
async function begin(t: Test) {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 2 })
  const worker = async () => {
    const faults: Error[] = []
    const queue = await openConsumer(url, { connections: 2, onError: (fault) => void faults.push(fault) })
    const claims = queue.claims('deliver-webhook')
    t.teardown(async () => {
      // Errors after this don't count, because dropping the database can end connections that are closing.
      const [fault] = faults
      claims.close()
      await queue.stop(1_000)
      if (fault) throw fault
    })
    return claims
  }
  /** Stores jobs of a group, or without one. */
  const store = (group: string | null, count: number, { priority = 0, seconds = 0 } = {}) =>
    database.query(sql.unsafe`
      insert into pgboss.job (name, data, group_id, priority, start_after)
      select 'deliver-webhook', jsonb_build_object('group', ${group}::text), ${group}, ${priority},
        now() + ${seconds} * interval '1 second'
      from generate_series(1, ${count}::int)`)
  return { database, store, one: await worker(), other: await worker() }
}

const roomsOf = (of: Record<string, number>, others: number) => ({ of: new Map(Object.entries(of)), others })

/** Counts the jobs of each group. */
const counted = (jobs: readonly FetchedJob<'deliver-webhook'>[]) =>
  Object.fromEntries(
    [...Map.groupBy(jobs, ({ data }) => String((data as unknown as { group: string | null }).group))].map(
      ([group, own]) => [group, own.length],
    ),
  )

t.test('claims up to the capacity of each group', async (t) => {
  const { store, one } = await begin(t)
  for (const group of ['a', 'b', 'c', 'd']) await store(group, 5)
  const rooms = roomsOf({ a: 3, b: 0 }, 2)
  t.strictSame(counted(await one.fetch(20, { rooms })), { a: 3, c: 2, d: 2 })
  t.strictSame(counted(await one.fetch(20, { rooms, except: ['c'] })), { a: 2, d: 2 })
  t.equal((await one.fetch(3, { rooms: roomsOf({}, 2) })).length, 3)
})

t.test('serves groups by the priority of their longest due jobs', async (t) => {
  const { store, one } = await begin(t)
  await store('a', 5, { priority: -9, seconds: -60 })
  await store('b', 5, { priority: -1 })
  await store('c', 5, { seconds: 3_600 })
  t.strictSame(counted(await one.fetch(5, { rooms: roomsOf({}, 4) })), { b: 4, a: 1 })
  t.strictSame(counted(await one.fetch(20, { rooms: roomsOf({}, 20) })), { a: 4, b: 1 })
})

t.test('claims jobs without a group after those', async (t) => {
  const { store, one } = await begin(t)
  await store(null, 5, { priority: 9 })
  await store('a', 5)
  t.strictSame(counted(await one.fetch(6, { rooms: roomsOf({}, 4) })), { a: 4, null: 2 })
  t.strictSame(counted(await one.fetch(6, { rooms: roomsOf({ a: 0 }, 4) })), { null: 3 })
})

t.test('leaves jobs that another worker is claiming', async (t) => {
  const { database, store, one } = await begin(t)
  await store('a', 30, { seconds: -60 })
  await store('a', 30)
  await database.transaction(async (tx) => {
    const taken = await tx.anyFirst(sql.unsafe`
      select id from pgboss.job where name = 'deliver-webhook' order by start_after limit 30 for update`)
    const claimed = await one.fetch(30, { rooms: roomsOf({}, 30) })
    t.equal(new Set([...taken, ...claimed.map(({ id }) => id)]).size, 60)
  })
})

t.test('a retried job is claimed as a new attempt', async (t) => {
  const { database, store, one, other } = await begin(t)
  await store('a', 1)
  const rooms = roomsOf({}, 1)
  const [job] = await one.fetch(1, { rooms })
  if (!job) throw new Error('nothing was claimed')
  t.ok(one.isHeld(job))
  t.strictSame(await other.fetch(1, { rooms }), [], 'it is nobody else’s')
  await database.transaction((tx) => one.settle(tx, new Map([[job, { end: 'again', seconds: 0 }]])))
  const [again] = await other.fetch(1, { rooms })
  t.match(again, { id: job.id, retryCount: job.retryCount + 1 })
})
