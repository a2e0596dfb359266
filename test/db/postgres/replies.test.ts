/** Waiting for a reply: immediately by notification, by polling without one, and with a timeout. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { number, object } from 'yup'
import { announce, createReplies } from '../../../db/postgres/replies.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const { url } = await testDatabase(t)
const database = await openPool(t, url)

const listeners = async (): Promise<number> => {
  const { n } = await database.one(sql.type(object({ n: number().defined() }))`
    select count(*) as n from pg_stat_activity
    where application_name = 'heliograph listen' and datname = current_database()
      and query ~ '^(listen|select 1)'`)
  return n
}

/** A question whose reply exists once `store` was called. */
function question(timeout: number) {
  let stored: string | null = null
  let reads = 0
  return {
    store(value: string) {
      stored = value
    },
    reads: () => reads,
    send: async () => {},
    read: async () => {
      reads += 1
      return stored
    },
    timeout,
  }
}

t.test('a notification brings the reply immediately to its waiter', async (t) => {
  const replies = createReplies(url, { poll: 60_000 })
  t.teardown(() => replies.close())
  await until('it listens', async () => (await listeners()) === 1)
  // After this notification, none from the initial connection is pending.
  const first = question(30_000)
  const rung = replies.ask('first', first)
  first.store('first')
  await announce(database, ['first'])
  t.equal(await rung, 'first')
  const [mine, other] = [question(30_000), question(30_000)]
  const [answer, late] = [replies.ask('mine', mine), replies.ask('other', other)]
  const before = other.reads()
  mine.store('here')
  await announce(database, ['mine', 'unknown'])
  t.equal(await answer, 'here')
  t.equal(other.reads(), before, 'another’s notification does not ring')
  t.equal(mine.reads(), 1, 'no poll')
  t.equal(await replies.ask('nobody', question(200)), null, 'nothing came in time')
  await replies.close()
  t.equal(await late, null)
})

t.test('receives a reply that arrives during the request', async (t) => {
  const replies = createReplies(url, { poll: 60_000 })
  t.teardown(() => replies.close())
  await until('it listens', async () => (await listeners()) === 1)
  const early = question(30_000)
  const send = async () => {
    early.store('early')
    await announce(database, ['early'])
    await sleep(100)
  }
  t.equal(await replies.ask('early', { ...early, send }), 'early')
})

t.test('polls without a notification, and ignores one without a reply', async (t) => {
  const replies = createReplies(url, { poll: 100 })
  t.teardown(() => replies.close())
  const slow = question(30_000)
  const answer = replies.ask('slow', slow)
  await announce(database, ['slow'])
  await sleep(250)
  slow.store('polled')
  t.equal(await answer, 'polled')
})

t.test('all waiters share one connection, which reconnects', async (t) => {
  const replies = createReplies(url, { poll: 60_000 })
  t.teardown(() => replies.close())
  await until('it listens', async () => (await listeners()) === 1)
  const many = Array.from({ length: 50 }, () => question(30_000))
  const answers = many.map((each, index) => replies.ask(`many ${index}`, each))
  t.equal(await listeners(), 1)
  for (const each of many) each.store('there')
  await database.query(sql.unsafe`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'heliograph listen' and datname = current_database()`)
  t.strictSame(new Set(await Promise.all(answers)), new Set(['there']), 'looked for after the reconnection')
})

t.test("a question that can't be sent fails immediately", async (t) => {
  const replies = createReplies(url)
  t.teardown(() => replies.close())
  const failing = { ...question(30_000), send: async () => Promise.reject(new Error('no database')) }
  await t.rejects(replies.ask('failing', failing), { message: 'no database' })
})

t.test('closing returns existing replies to all waiters', async (t) => {
  const replies = createReplies(url, { poll: 60_000 })
  const [stored, open] = [question(60_000), question(60_000)]
  const answers = [replies.ask('stored', stored), replies.ask('open', open)]
  stored.store('just in time')
  await replies.close()
  t.strictSame(await Promise.all(answers), ['just in time', null])
})
