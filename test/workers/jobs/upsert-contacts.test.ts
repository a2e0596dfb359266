/** Bulk upserts between API and workers: absent workers and clients, stale attempts, and concurrency. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { number, object } from 'yup'
import { lockAccount } from '../../../db/accounts/teams/limits.ts'
import { insertUpsert, upsertResult } from '../../../db/audience/contacts/upserts.sql.ts'
import { idRow, row } from '../../../db/postgres/rows.ts'
import type { FetchedJob } from '../../../db/queue/claims.ts'
import { openJobsBefore } from '../../../db/queue/jobs.sql.ts'
import type { Batch } from '../../../workers/batches/batches.ts'
import type { WorkerDeps } from '../../../workers/deps.ts'
import { purgeUpserts } from '../../../workers/jobs/purge-upserts.ts'
import { runUpserts } from '../../../workers/jobs/upsert-contacts.ts'
import { startApi } from '../../support/api-process.ts'
import { shiftClock } from '../../support/clock.ts'
import { contactsStored, contactsUsed, teamWithRoom } from '../../support/contacts.ts'
import { type Reply, type Service, startService, type TestTeam, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import t, { type Test } from '../../support/tap.ts'
import { startProcess, startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const NO_RELAY = { smtp_url: 'smtp://127.0.0.1:9' }

const bulk = ({ call }: Pick<Service, 'call'>, { key }: TestTeam, contacts: unknown): Promise<Reply> =>
  call('POST', '/v1/contacts/bulk', { key, body: { contacts } })

async function count({ database }: Service, rows: 'open' | 'all' | 'jobs'): Promise<number> {
  const counted = {
    open: sql.fragment`contact_upserts where finished_at is null`,
    all: sql.fragment`contact_upserts`,
    jobs: sql.fragment`pgboss.job where name = 'upsert-contacts' and state < 'completed'`,
  }[rows]
  const { n } = await database.one(sql.type(row({ n: number() }))`select count(*) as n from ${counted}`)
  return n
}

t.test('without workers, a 503 loses nothing and is repeatable', async (t) => {
  const service = await startService(t, { upsertWait: 300 })
  const team = await teamWithRoom(service, 2)
  const contacts = [
    { email: 'a@example.org', properties: { n: '1' } },
    { email: 'invalid' },
    { email: 'b@example.org' },
    { email: 'c@example.org' },
  ]
  const reply = await bulk(service, team, contacts)
  t.strictSame([reply.status, reply.body.error?.code], [503, 'unavailable'])
  t.ok(Number(reply.headers.get('retry-after')) >= 1)
  t.strictSame([await count(service, 'open'), await count(service, 'jobs')], [1, 1], 'both are stored')
  t.equal((await bulk(service, team, contacts)).status, 503, 'the client tries again')
  await startWorker(t, service, NO_RELAY)
  await until('both are carried out', async () => (await count(service, 'open')) === 0)
  const patient = await startService(t, { url: service.url })
  const outcomes = (await bulk(patient, team, contacts)).body.data
  const emails = (await service.call('GET', '/v1/contacts', { key: team.key })).body.data
  const id = (email: string) => emails.find((each: { email: string }) => each.email === email)?.id
  t.match(outcomes, [
    { index: 0, id: id('a@example.org') },
    { index: 1, error: { code: 'bad_request' } },
    { index: 2, id: id('b@example.org') },
    { index: 3, error: { code: 'quota_exceeded' } },
  ])
  t.strictSame([await contactsUsed(service, team), emails.length], [2, 2])
})

t.test('a client’s disconnect does not stop the work', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const gone = new AbortController()
  const answer = fetch(`${service.base}/v1/contacts/bulk`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${team.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ contacts: [{ email: 'a@example.org' }] }),
    signal: gone.signal,
  })
  await until('the call is stored', async () => (await count(service, 'jobs')) === 1)
  gone.abort()
  await t.rejects(answer)
  await startWorker(t, service, NO_RELAY)
  await until('it is carried out', async () => (await contactsStored(service, team)) === 1)
})

t.test('a lost listening connection loses no response', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const answer = bulk(service, team, [{ email: 'a@example.org' }])
  await until('the call is stored', async () => (await count(service, 'jobs')) === 1)
  await service.database.query(sql.unsafe`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'heliograph listen' and datname = current_database()`)
  await startWorker(t, service, NO_RELAY)
  t.equal((await answer).status, 200)
})

t.test('calls that waited for a worker are written in order', async (t) => {
  const impatient = await startService(t, { upsertWait: 1 })
  const team = await teamWithRoom(impatient, 1_000)
  const properties = { text: 'x'.repeat(2_000) }
  const others = Array.from({ length: 200 }, (_, index) => ({ email: `${index}@example.org`, properties }))
  const call = (n: string) => [...others, { email: 'a@example.org', properties: { n } }]
  for (let n = 1; n <= 12; n++) t.equal((await bulk(impatient, team, call(`${n}`))).status, 503)
  const service = await startService(t, { url: impatient.url })
  const last = bulk(service, team, call('last'))
  await until('all are stored', async () => (await count(service, 'jobs')) === 13)
  await startWorker(t, service, NO_RELAY)
  t.equal((await last).status, 200)
  t.equal(await count(service, 'open'), 0, 'those before it are carried out by then')
  await until('their jobs end', async () => (await count(service, 'jobs')) === 0)
  const { body } = await service.call('GET', '/v1/contacts/a@example.org', { key: team.key })
  t.strictSame(body.properties, { n: 'last' })
})

t.test('a team’s earlier calls run first unless an attempt failed', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const ids = Array.from({ length: 7 }, () => uuidv7())
  const [created = '', active = '', again, tried, done, others, later] = ids
  const rows = [
    [active, 'active', 0, team.id],
    [created, 'created', 0, team.id],
    [again, 'retry', 0, team.id],
    [tried, 'active', 1, team.id],
    [done, 'completed', 0, team.id],
    [others, 'created', 0, uuidv7()],
    [later, 'created', 0, team.id],
  ] as const
  for (const [id = '', state, retries, team_id] of rows)
    await service.database.query(sql.unsafe`
      insert into pgboss.job (name, id, data, state, retry_count)
      values ('upsert-contacts', ${id}, ${JSON.stringify({ team_id })}, ${state}, ${retries})`)
  const before = (id = '') => openJobsBefore(service.database, 'upsert-contacts', { team_id: team.id, id })
  t.strictSame(await before(later), [created, active])
  t.strictSame(await before(created), [])
})

t.test('calls are ordered by the database’s time in every process', async (t) => {
  const service = await startService(t, { clock: () => new Date('2026-01-31T09:00:00Z'), upsertWait: 1 })
  const team = await teamWithRoom(service, 10)
  t.equal((await bulk(service, team, [{ email: 'a@example.org' }])).status, 503)
  const [id] = await service.database.anyFirst(sql.type(idRow)`select id from contact_upserts`)
  t.equal(Number.parseInt((id ?? '').replace('-', '').slice(0, 12), 16), Date.parse('2026-01-31T09:00:00Z'))
})

/** Returns a stored call, and a job for it as claimed by a worker. */
async function fetched({ database }: Service, { id: team_id }: TestTeam, body: string) {
  const upsert_id = uuidv7()
  await insertUpsert(database, team_id, { id: upsert_id, body: Buffer.from(body) }, new Date())
  return { id: upsert_id, data: { team_id, upsert_id } } as FetchedJob<'upsert-contacts'>
}

/** The handler's dependencies; its job is not in the queue. */
const handlerDeps = ({ deps }: Service): WorkerDeps => deps as unknown as WorkerDeps

/** Creates a batch of jobs outside the queue, and a list of every end. */
function batchOf(...jobs: FetchedJob<'upsert-contacts'>[]) {
  const ended: string[] = []
  const settle: Batch<'upsert-contacts'>['settle'] = async (_tx, ends) => {
    ended.push(...[...ends.keys()].map(({ id }) => id))
  }
  return { jobs, settle, ended }
}

t.test('a call runs once, however many workers have its job', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const body = JSON.stringify({ contacts: [{ email: 'a@example.org', properties: { n: '1' } }] })
  const job = await fetched(service, team, body)
  const deps = handlerDeps(service)
  const batch = batchOf(job)
  const [locked, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  // Keeps all of them busy at once.
  const holding = service.database.transaction(async (tx) => {
    await lockAccount(tx, team.id)
    locked.resolve()
    await begun.promise
    await sleep(300)
  })
  await locked.promise
  const attempts = Array.from({ length: 5 }, () => runUpserts(batch, deps))
  begun.resolve()
  await Promise.all([holding, ...attempts])
  t.strictSame(batch.ended, Array(5).fill(job.id))
  const { body: made } = await service.call('GET', '/v1/contacts/a@example.org', { key: team.key })
  t.equal(made.updated_at, made.created_at, 'written once')
  await service.call('PATCH', '/v1/contacts/a@example.org', {
    key: team.key,
    body: { properties: { n: '2' } },
  })
  await runUpserts(batch, deps)
  const { body: contact } = await service.call('GET', '/v1/contacts/a@example.org', { key: team.key })
  t.strictSame(contact.properties, { n: '2' }, 'a stale attempt writes nothing')
  t.equal(await contactsUsed(service, team), 1)
})

t.test('an error in one call fails only that call, completely', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const good = JSON.stringify({ contacts: [{ email: 'a@example.org' }] })
  const [bad, fine] = [await fetched(service, team, '{'), await fetched(service, team, good)]
  const batch = batchOf(bad, fine)
  await runUpserts(batch, handlerDeps(service))
  t.strictSame(batch.ended, [fine.id], 'the other is left, and so tried again')
  t.equal(await upsertResult(service.database, team.id, bad.data.upsert_id), null)
  t.match(await upsertResult(service.database, team.id, fine.data.upsert_id), { items: [String] })
})

t.test('finished upserts are deleted; waiting ones are not', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const [old, waiting] = [await fetched(service, team, '{"contacts":[]}'), await fetched(service, team, '{}')]
  await runUpserts(batchOf(old), handlerDeps(service))
  const at = async (hours: number): Promise<number> => {
    await shiftClock(service.database, hours * 3_600)
    await purgeUpserts(handlerDeps(service))
    return count(service, 'all')
  }
  t.equal(await at(0), 2, 'the answer may still be on its way')
  t.equal(await at(2), 1)
  t.equal(await upsertResult(service.database, team.id, old.id), null)
  t.equal(await count(service, 'open'), 1, waiting.id)
  t.equal(await at(31 * 24), 0, 'when its job is gone too')
})

/** Returns `n` contacts of a range in a shuffled order. */
const shuffled = (from: number, n: number, round: number) =>
  Array.from({ length: n }, (_, index) => ({
    email: `p${from + ((index * 7_919 + round * 613) % n)}@example.org`,
    properties: { round: String(round) },
  }))

async function rightIds(
  t: Test,
  service: Service,
  team: TestTeam,
  calls: { sent: { email: string }[]; reply: Reply }[],
) {
  const row = object({ list: object().defined() })
  const { list } = await service.database.one(sql.type(row)`
    select coalesce(json_object_agg(email, id), '{}') as list from contacts where team_id = ${team.id}`)
  const ids = list as Record<string, string>
  let wrong = 0
  let refused = 0
  for (const { sent, reply } of calls) {
    t.equal(reply.status, 200)
    for (const { index, id, error } of reply.body.data) {
      if (error)
        refused += error.code === 'quota_exceeded' && ids[sent[index]?.email ?? ''] === undefined ? 1 : 1e9
      else if (ids[sent[index]?.email ?? ''] !== id) wrong += 1
    }
  }
  t.equal(wrong, 0, 'every id is the right one')
  return refused
}

t.test('20 concurrent bulks of overlapping contacts, by four processes', async (t) => {
  const service = await startService(t)
  const [roomy, small] = [await teamWithRoom(service, 100_000), await teamWithRoom(service, 1_500)]
  const env = { DATABASE_URL: service.url, SMTP_URL: NO_RELAY.smtp_url }
  const [one, two] = await Promise.all([
    startApi(t, service.url),
    startApi(t, service.url),
    startProcess(t, 'workers/main.ts', env),
    startProcess(t, 'workers/main.ts', env),
  ])
  const calls = await Promise.all(
    Array.from({ length: 20 }, async (_, round) => {
      const team = round % 2 ? small : roomy
      const sent = shuffled((round % 5) * 250, 1_000, round)
      const call = () => bulk(round % 4 < 2 ? one : two, team, sent)
      let reply = await call()
      // On a busy machine a call may time out. Its client repeats it.
      while (reply.status === 503) reply = await call()
      return { team, sent, reply }
    }),
  )
  const of = (team: TestTeam) => calls.filter((each) => each.team === team)
  t.equal(await rightIds(t, service, roomy, of(roomy)), 0)
  t.ok((await rightIds(t, service, small, of(small))) > 0, 'what did not fit carries quota_exceeded')
  t.strictSame([await contactsUsed(service, roomy), await contactsStored(service, roomy)], [2_000, 2_000])
  t.strictSame([await contactsUsed(service, small), await contactsStored(service, small)], [1_500, 1_500])
  // A server process reports its stats a second after its last transaction.
  await sleep(1_500)
  const { deadlocks } = await service.database.one(sql.type(row({ deadlocks: number() }))`
    select deadlocks from pg_stat_database where datname = current_database()`)
  t.equal(deadlocks, 0)
})
