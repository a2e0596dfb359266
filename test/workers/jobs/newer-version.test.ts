/** What only a newer version knows: its queues and providers, met by this version's workers and CLI. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { object } from 'yup'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { lostMessages } from '../../../db/delivery/sweep.sql.ts'
import { nameRow } from '../../../db/postgres/rows.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { queueStatus } from '../../../db/queue/jobs.sql.ts'
import { requeueStale } from '../../../workers/jobs/requeue-stale.ts'
import { adminCli } from '../../support/admin.ts'
import { runClock, stopClock } from '../../support/clock.ts'
import { beginReports, DELIVERED, settled, storeAll } from '../../support/ingestion.ts'
import { emailStatus, eventsOf, jobsIn, storedReports } from '../../support/reports.ts'
import { type Service, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

/** Creates queues like a newer version's release. */
const makeQueues = ({ database }: Service, ...names: string[]) =>
  database.any(sql.type(object())`
    select pgboss.create_queue(name, '{"policy": "standard", "partition": false}'::jsonb)
    from unnest(${sql.array(names, 'text')}) as q (name)`)

/** Moves an email's job to another queue. @param given_up makes it a dead letter there. */
async function moveJob(
  { database }: Service,
  id: string,
  { to, given_up = false }: { to: string; given_up?: boolean },
) {
  const dead = given_up ? sql.fragment`${uuidv7()}::uuid, id` : sql.fragment`id, null::uuid`
  await database.query(sql.unsafe`
    with moved as (delete from pgboss.job where name = 'deliver-email' and id = ${id} returning *)
    insert into pgboss.job (name, id, source_id, data) select ${to}, ${dead}, data from moved`)
}

/** Returns the queues that contain a job or a dead letter of an email. */
const queuesWith = async ({ database }: Service, id: string): Promise<string[]> => {
  const rows = await database.any(sql.type(nameRow)`
    select name from pgboss.job where id = ${id} or source_id = ${id} order by name`)
  return rows.map(({ name }) => name)
}

t.test('a newer version’s job prevents a second one', async (t) => {
  const { service, cli, database, team, send } = await world(t)
  const queue = await openConsumer(service.url, { connections: 3, onError: () => {} })
  t.teardown(() => queue.stop(1_000))
  await makeQueues(service, 'deliver-next', 'deliver-next-dead')
  const [waiting, given_up, lost] = [await send(), await send(), await send()]
  await moveJob(service, waiting, { to: 'deliver-next' })
  await moveJob(service, given_up, { to: 'deliver-next-dead', given_up: true })
  await database.query(sql.unsafe`delete from pgboss.job where id = ${lost}`)

  const beginning = { after: '-infinity', size: 10 }
  const long = { before: new Date(Date.now() + 3_600_000), limit: 1 }
  const found = await database.transaction((tx) => lostMessages(tx, EMAIL, beginning, long))
  t.match(found.lost, [{ id: lost }], 'the older ones hide none that is lost')
  await stopClock(database, new Date(Date.now() + 3_600_000))
  await requeueStale({ database, queue, log: service.deps.log })
  await runClock(database)
  t.match(await eventsOf(service, lost), [{ kind: 'requeued' }], 'the sweep has looked')
  for (const [id, where] of [
    [waiting, 'deliver-next'],
    [given_up, 'deliver-next-dead'],
  ] as const) {
    t.strictSame(await queuesWith(service, id), [where])
    const { code, stderr } = await cli.run(['email', 'requeue', team.id, id])
    t.equal(code, 1)
    t.match(stderr, 'A newer version of Heliograph delivers this email.')
    t.strictSame(await queuesWith(service, id), [where])
  }
  t.match(await cli.json(['email', 'requeue', team.id, '--status', 'queued']), { requeued: 1 })
  t.equal((await jobsIn(service, 'deliver-email')).length, 1)
})

t.test('a newer version’s report waits for that version’s workers', async (t) => {
  const { service, ids, status } = await beginReports(t, 2)
  const { database } = service
  await storeAll(
    service,
    ids.map((id) => status(id, DELIVERED)),
  )
  await database.query(sql.unsafe`alter table reports drop constraint reports_provider_check`)
  const [newer] = await storedReports(service)
  await database.query(sql.unsafe`update reports set provider = 'next' where id = ${newer?.id ?? ''}`)
  const worker = await startWorker(t, service)
  await until('the other one is read', async () => (await emailStatus(service, ids[1] ?? '')) === 'delivered')
  await until('it is left, and no try counts', () =>
    database.exists(sql.unsafe`
      select from pgboss.job
      where name = 'ingest-report' and state = 'created' and start_after > now() + interval '30 seconds'`),
  )
  t.match(await storedReports(service), [{ state: 'pending', provider: 'next' }, { state: 'done' }])
  t.notOk((await queueStatus(database)).some(({ dead }) => dead > 0))
  const cli = adminCli({ DATABASE_URL: service.url })
  t.match(await cli.json(['report', 'list']), [{ state: 'done' }, { provider: 'next', state: 'pending' }])

  // Simulates a newer worker that knows it.
  await database.query(sql.unsafe`update reports set provider = 'smtp' where id = ${newer?.id ?? ''}`)
  await database.query(sql.unsafe`update pgboss.job set start_after = now() where name = 'ingest-report'`)
  await until('both are read', () => settled(service))
  t.equal(await emailStatus(service, ids[0] ?? ''), 'delivered')
  await worker.stop()
})
