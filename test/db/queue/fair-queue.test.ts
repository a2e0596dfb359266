/** The queue alternates between teams, so one team's backlog doesn't delay another team. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import { subscribeTeam } from '../../../db/accounts/teams/subscribe.ts'
import { createVersions } from '../../../db/content/templates/versions.ts'
import { acceptEmails } from '../../../db/messages/emails/accept.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { row } from '../../../db/postgres/rows.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { readQueuePosition } from '../../../db/queue/fair-queue.sql.ts'
import { positionsAfter, toPriority } from '../../../db/queue/fair-queue.ts'
import { createProducer, type Producer } from '../../../db/queue/producer.ts'
import { anItem, openStore, type Store } from '../../support/stored-emails.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

/** A store, and functions of its teams. */
async function begin(test: Test) {
  const store = await openStore(test)
  const team = async (): Promise<string> => {
    const id = await store.team('pro')
    await store.database.transaction((tx) =>
      subscribeTeam({ tx, now: new Date(), actor: null }, id, { plan: 'pro', send_rate_per_second: 100_000 }),
    )
    await store.database.query(sql.unsafe`update allowances set bucket_tokens = 1000`)
    return id
  }
  return { store, team }
}

/** Accepts emails of a team, with a producer that has just read the queue's position unless one is given. */
async function send(
  { database }: Store,
  team_id: string,
  count: number,
  { queue = createProducer(), ...door }: { queue?: Producer; batch?: true } = {},
) {
  const items = Array.from({ length: count }, () => anItem())
  await database.transaction((tx) =>
    acceptEmails({ tx, queue, versions: createVersions() }, { team_id, domain: null, ...door }, items),
  )
}

/** Returns the waiting jobs in the order in which pg-boss fetches them. */
const line = ({ database }: Store) =>
  database.any(sql.type(row({ id: string(), team_id: string() }))`
    select id, data ->> 'team_id' as team_id from pgboss.job
    where name = 'deliver-email' and state < 'active' order by priority desc, created_on`)

/** Delivers the first jobs, as a worker does. */
async function deliver(store: Store, count: number): Promise<void> {
  const ids = (await line(store)).slice(0, count).map(({ id }) => id)
  await store.database.query(sql.unsafe`
    update pgboss.job set state = 'completed' where name = 'deliver-email' and id = any(${sql.array(ids, 'uuid')})`)
}

const placeOf = async (store: Store, team: string): Promise<number> =>
  (await line(store)).findIndex(({ team_id }) => team_id === team)

t.test("a position follows the team's last and the queue's front", async (t) => {
  t.strictSame(positionsAfter(0, 0, 3), [1, 2, 3])
  t.strictSame(positionsAfter(7, 3, 2), [8, 9])
  t.strictSame(positionsAfter(7, 100, 2), [100, 101])
  t.ok(toPriority(1) > toPriority(2))
  t.equal(toPriority(9_000_000_000), -2_147_483_647)
})

/** Reads the queue's position, and how many jobs that reads, counted within a transaction. */
async function looked(tx: Tx) {
  const read = () =>
    tx.oneFirst(sql.type(row({ read: number() }))`
      select sum(idx_tup_fetch + seq_tup_read) as read from pg_stat_xact_all_tables
      where schemaname = 'pgboss' and relname = (select table_name from pgboss.queue where name = 'deliver-email')`)
  const before = await read()
  const { head } = await readQueuePosition(tx, 'deliver-email', 0)
  return { head, jobs: (await read()) - before }
}

/** Stores jobs with positions from `from` on, due after an interval. */
const storeJobs = (tx: Tx, from: number, count: number, due: string) =>
  tx.query(sql.unsafe`
    insert into pgboss.job (name, id, data, priority, start_after, policy)
    select 'deliver-email', gen_random_uuid(), '{}', -n, now() + ${due}::interval, 'standard'
    from generate_series(${from}::int, ${from + count - 1}::int) n`)

t.test('a process after an empty queue reads one job', async (t) => {
  const { database } = await openStore(t)
  await database.transaction(async (tx) => {
    // Autovacuum would also find it empty, and PostgreSQL caches no plan before the sixth execution.
    await tx.query(sql.unsafe`analyze pgboss.job`)
    for (let look = 0; look < 10; look++) await looked(tx)
    await storeJobs(tx, 7, 3_000, '0')
    const { head, jobs } = await looked(tx)
    t.equal(head, 7)
    t.ok(jobs < 10, `${jobs} jobs read`)
  })
})

t.test('finds the front of the queue among many deferred jobs', async (t) => {
  const { database } = await openStore(t)
  await database.transaction(async (tx) => {
    await storeJobs(tx, 10_001, 10_000, '1 hour')
    await tx.query(sql.unsafe`analyze pgboss.job`)
    t.match(await looked(tx), { head: null, jobs: 1 })
    // These became due after the planner learned that none were.
    await storeJobs(tx, 30_001, 5_000, '-1 second')
    const behind = await looked(tx)
    t.equal(behind.head, 30_001)
    t.ok(behind.jobs < 2_100, `${behind.jobs} jobs read`)
    await storeJobs(tx, 9, 5_000, '-1 second')
    const before = await looked(tx)
    t.equal(before.head, 9)
    t.ok(before.jobs < 10, `${before.jobs} jobs read`)
  })
})

t.test("a single email is queued ahead of another team's backlog", async (t) => {
  const { store, team } = await begin(t)
  const [flood, other, third] = [await team(), await team(), await team()]
  await send(store, flood, 100)
  await send(store, flood, 100)
  await send(store, other, 1)
  t.ok((await placeOf(store, other)) <= 1)
  await deliver(store, 120)
  await send(store, third, 1)
  t.ok((await placeOf(store, third)) <= 2)
})

t.test('two backlogs alternate, whichever was first', async (t) => {
  const { store, team } = await begin(t)
  const [one, two] = [await team(), await team()]
  await send(store, one, 100)
  await send(store, two, 100)
  const first = (await line(store)).slice(0, 100)
  const ofOne = first.filter(({ team_id }) => team_id === one).length
  t.ok(ofOne >= 45 && ofOne <= 55, `${ofOne} of 100`)
})

t.test("delivered email doesn't count against a team", async (t) => {
  const { store, team } = await begin(t)
  const [busy, idle] = [await team(), await team()]
  await send(store, busy, 200, { queue: store.queue })
  await deliver(store, 200)
  await until('the process looks again', async () => {
    return (await store.queue.reached(store.database, 'deliver-email')) === 200
  })
  await send(store, idle, 50)
  await send(store, busy, 1)
  t.ok((await placeOf(store, busy)) <= 2)
})

t.test('requeued emails are placed after the front of the queue', async (t) => {
  const { store, team } = await begin(t)
  const [flood, other] = [await team(), await team()]
  await send(store, other, 100)
  await deliver(store, 50)
  const again = (await line(store)).map(({ id }) => ({ team_id: other, email_id: id }))
  await send(store, flood, 5)
  const queue = createProducer()
  await store.database.transaction((tx) => queue.reenqueue(tx, 'deliver-email', again))
  const first = (await line(store)).slice(0, 10)
  t.equal(first.filter(({ team_id }) => team_id === flood).length, 5)
})

t.test('a deferred email neither jumps the queue nor starves', async (t) => {
  const { store, team } = await begin(t)
  const [flood, other] = [await team(), await team()]
  await send(store, flood, 100, { queue: store.queue })
  await deliver(store, 80)
  const worker = await openConsumer(store.url, { connections: 2, onError: () => {} })
  t.teardown(() => worker.stop(1_000))
  const claims = worker.claims('deliver-email')
  const tried = await claims.fetch(20)
  await until('the process looks again', async () => {
    return (await store.queue.reached(store.database, 'deliver-email')) === 100
  })
  await send(store, other, 20, { queue: store.queue })
  const ends = new Map(tried.map((job) => [job, { end: 'again', seconds: 0 } as const]))
  await store.database.transaction((tx) => claims.settle(tx, ends))
  const ofOther = (await line(store)).slice(0, 20).filter(({ team_id }) => team_id === other).length
  t.ok(ofOther >= 8 && ofOther <= 12, `${ofOther} of 20`)
})

t.test('another team waits behind up to three lanes', async (t) => {
  const { store, team } = await begin(t)
  const [flood, other] = [await team(), await team()]
  await send(store, flood, 100)
  const again = (await line(store)).map(({ id }) => ({ team_id: flood, email_id: id }))
  const queue = createProducer()
  await store.database.transaction((tx) => queue.reenqueue(tx, 'deliver-email', again))
  for (const _ of [1, 2]) {
    await send(store, flood, 100, { batch: true })
    await send(store, flood, 50)
  }
  await send(store, other, 20)
  const first = (await line(store)).slice(0, 80)
  t.equal(first.filter(({ team_id }) => team_id === other).length, 20)
})

t.test('a batch continues behind endless single sends', async (t) => {
  const { store, team } = await begin(t)
  const busy = await team()
  await send(store, busy, 50, { batch: true })
  const items = new Set((await line(store)).map(({ id }) => id))
  for (let round = 0; round < 10; round++) {
    await send(store, busy, 10)
    await deliver(store, 10)
  }
  const left = (await line(store)).filter(({ id }) => items.has(id)).length
  t.ok(left <= 5, `${left} of 50 are left`)
})
