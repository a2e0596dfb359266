/** The verbs of queues, with dead letters from a real worker loop. */
import { sql } from 'slonik'
import { seenNow } from '../../../db/postgres/snapshot.sql.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { removeDeadLetters } from '../../../db/queue/dead-letters.sql.ts'
import type { End } from '../../../db/queue/jobs.ts'
import { adminCli } from '../../support/admin.ts'
import { openStore, type Store } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'

const EMPTY = {
  workers: [],
  queue: 'deliver-email',
  ready: 0,
  active: 0,
  deferred: 0,
  failed: 0,
  dead: 0,
  oldest_ready_seconds: null,
  paused: false,
  paused_at: null,
  paused_by: null,
  pause_reason: null,
  completed_per_second: 0,
}

const GIVEN_UP: End = { end: 'given_up', reason: 'words' }

/** Ends `count` jobs of the queue. */
async function workOff({ url, database }: Store, end: End, count: number) {
  const consumer = await openConsumer(url, { connections: 2, onError: () => {} })
  const seen: string[] = []
  const claims = consumer.claims('deliver-email')
  while (seen.length < count) {
    const jobs = await claims.fetch(10)
    seen.push(...jobs.map(({ id }) => id))
    await database.transaction((tx) => claims.settle(tx, new Map(jobs.map((job) => [job, end]))))
    if (jobs.length === 0) await claims.idle()
  }
  await consumer.stop(5_000)
  return seen.sort()
}

/** Defers a waiting job for an hour, so that tests don't depend on the length of a pause. */
const postpone = async ({ database }: Store, id: string) =>
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() + interval '1 hour' where id = ${id}`)

t.test('queue status counts ready, deferred and dead jobs', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  const [empty] = await cli.json(['queue', 'status'])
  t.strictSame(empty, EMPTY)
  const id = await store.team()
  const [row] = [await store.email(id), await store.email(id), await store.email(id)]
  await postpone(store, row.id)
  const [status] = await cli.json(['queue', 'status'])
  t.match(status, { ready: 2, deferred: 1, active: 0, dead: 0 })
  t.ok(status.oldest_ready_seconds >= 0 && status.oldest_ready_seconds < 60)
})

t.test('queue redrive retries dead letters and marks their emails', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  const id = await store.team()
  const ids = [(await store.email(id)).id, (await store.email(id)).id].sort()
  t.same(await workOff(store, GIVEN_UP, 2), ids)
  t.match((await cli.json(['queue', 'status']))[0], { dead: 2, ready: 0, active: 0 })
  t.match(await cli.json(['email', 'show', id, ids[0] ?? '']), {
    status: 'queued',
    waiting: { state: 'failed' },
  })

  t.same(await cli.json(['queue', 'redrive', 'deliver-email']), { queue: 'deliver-email', redriven: 2 })
  t.match((await cli.json(['queue', 'status']))[0], { dead: 0, ready: 2 })
  const shown = await cli.json(['email', 'show', id, ids[0] ?? ''])
  t.match(shown, { requeued_at: /Z$/, events: [{ kind: 'requeued' }], waiting: { attempts: 0 } })
  t.same(await workOff(store, { end: 'completed' }, 2), ids)
  t.same(await cli.json(['queue', 'redrive', 'deliver-email']), { queue: 'deliver-email', redriven: 0 })
})

t.test('queue redrive only moves dead letters with the given reason', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  const id = await store.team()
  const [first, second] = [(await store.email(id)).id, (await store.email(id)).id]
  await workOff(store, { end: 'given_up', reason: 'refused: 550 "go away"' }, 2)
  const third = (await store.email(id)).id
  await workOff(store, GIVEN_UP, 1)
  const reasons = async () =>
    (await cli.json(['queue', 'reasons', 'deliver-email'])).map(
      ({ reason, count }: { reason: string; count: number }) => ({ reason, count }),
    )
  t.same(await reasons(), [
    { reason: 'refused: 550 "go away"', count: 2 },
    { reason: 'words', count: 1 },
  ])
  const [frequent] = await cli.json(['queue', 'reasons', 'deliver-email'])
  t.same([...frequent.samples].sort(), [first, second].sort(), 'the emails, not their jobs')
  const redrive = ['queue', 'redrive', 'deliver-email', '--reason']
  t.match(await cli.json([...redrive, 'unheard of']), { redriven: 0 })
  t.match(await cli.json([...redrive, 'refused: 550 "go away"']), { redriven: 2 })
  t.same(await reasons(), [{ reason: 'words', count: 1 }])
  t.match(await cli.json(['email', 'show', id, third]), { waiting: { state: 'failed' } })
  t.same(await workOff(store, { end: 'completed' }, 2), [first, second].sort())
})

t.test('a redrive leaves newer dead letters to the next call', async (t) => {
  const store = await openStore(t)
  const id = await store.team()
  const { id: first } = await store.email(id)
  await workOff(store, GIVEN_UP, 1)
  const seen = await seenNow(store.database)
  await store.email(id)
  await workOff(store, GIVEN_UP, 1)
  const take = () => removeDeadLetters(store.database, 'deliver-email', { seen, reason: null, limit: 100 })
  t.match(await take(), [{ email_id: first }])
  t.strictSame(await take(), [])
})

t.test('email requeue removes the dead letter of the email', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  const id = await store.team()
  const row = await store.email(id)
  await workOff(store, GIVEN_UP, 1)
  await cli.json(['email', 'requeue', id, row.id])
  t.match((await cli.json(['queue', 'status']))[0], { dead: 0, ready: 1 })
  t.match(await cli.json(['queue', 'redrive', 'deliver-email']), { redriven: 0 })
  t.same(await workOff(store, { end: 'completed' }, 1), [row.id])
})

t.test('email requeue makes a deferred email due', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  const id = await store.team()
  const row = await store.email(id)
  await workOff(store, { end: 'failed', reason: '' }, 1)
  await postpone(store, row.id)
  const { waiting } = await cli.json(['email', 'show', id, row.id])
  t.equal(waiting.state, 'deferred')
  t.ok(Date.parse(waiting.next_attempt_at) > Date.now(), 'a later time')
  t.match((await cli.json(['queue', 'status']))[0], { ready: 0, deferred: 1 })
  await cli.json(['email', 'requeue', id, row.id])
  t.match((await cli.json(['queue', 'status']))[0], { ready: 1, deferred: 0 })
})

t.test('queue redrive rejects an unknown queue', async (t) => {
  const cli = adminCli({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })
  t.match(await cli.fault(['queue', 'redrive', 'nothing']), /must be one of deliver-email/)
})
