/** A worker around its handlers: unreadable jobs, and errors with text that no database accepts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { mixed, number, string } from 'yup'
import { row } from '../../db/postgres/rows.ts'
import { openConsumer } from '../../db/queue/boss.ts'
import { queueStatus } from '../../db/queue/jobs.sql.ts'
import { createQueuePauses } from '../../db/queue/pauses.ts'
import { runBatches } from '../../workers/batches/batches.ts'
import type { WorkerDeps } from '../../workers/deps.ts'
import { createSmtpProvider } from '../../workers/providers/smtp/adapter.ts'
import { sentCount } from '../support/rows.ts'
import { anEmail, sendEmails, worldOf } from '../support/service.ts'
import { shareService } from '../support/shared-service.ts'
import { messageIdOf, startSmtpSink } from '../support/smtp-sink.ts'
import t from '../support/tap.ts'
import { startWorker, until } from '../support/worker.ts'

const renewed = await shareService(t)

t.test('an unreadable job is dead-lettered immediately and delays none', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const { url: smtp_url } = await startSmtpSink(t)
  await sendEmails(service, team, [{}, {}, {}])
  await service.database.query(sql.unsafe`
    update pgboss.job set data = '{"email_id": 5}' where id = (
      select min(id::text)::uuid from pgboss.job where name = 'deliver-email')`)
  await startWorker(t, service, { smtp_url })
  await until('the others are sent', async () => (await sentCount(service, team.id)) === 2)
  await until('it is dead', async () => (await queueStatus(service.database))[0]?.dead === 1)
})

t.test('messages whose workers died twice are attempted separately', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const [sending, together] = [new Set<string>(), new Set<string>()]
  const { url: smtp_url } = await startSmtpSink(t, {
    async onMessage(message) {
      const id = messageIdOf(message).split('@')[0] ?? ''
      sending.add(id)
      if (sending.size > 1) for (const each of sending) together.add(each)
      await sleep(300)
      sending.delete(id)
      return undefined
    },
  })
  const ids = await sendEmails(service, team, Array(12).fill({}))
  const lost = ids.slice(0, 3)
  await service.database.query(sql.unsafe`
    update pgboss.job set retry_count = 2 where name = 'deliver-email' and id = any(${sql.array(lost, 'uuid')})`)
  await startWorker(t, service, { smtp_url })
  await until('all are sent', async () => (await sentCount(service, team.id)) === 12)
  t.equal(lost.filter((id: string) => together.has(id)).join(), '')
  t.ok(together.size > 0, 'the others went together')
})

t.test('a message claimed during another probe waits only seconds', async (t) => {
  const { service, database, team } = await worldOf(await renewed())
  const { url } = await startSmtpSink(t)
  const email = createSmtpProvider({ url, max_connections: 1 })
  const sender = async () => {
    const own = await email.sender()
    // Once a worker that has read the sender has claimed, another worker's probe reserves the sender.
    await database.query(sql.unsafe`
      insert into senders (key, rate, tokens, refilled_at, paused_until)
      select ${own.key}, 1, 1, now(), now() + interval '30 seconds'
      where exists (select from pgboss.job where name = 'deliver-email' and state = 'active')
      on conflict do nothing`)
    return own
  }
  await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  await startWorker(t, service, { email: { ...email, sender } })
  const due = () =>
    database.maybeOne(sql.type(row({ waits: number() }))`
      select extract(epoch from start_after - now())::float8 as waits from pgboss.job
      where name = 'deliver-email' and state = 'created' and retry_count > 0`)
  await until('it is let go', async () => (await due()) !== null)
  const waits = (await due())?.waits ?? 0
  t.ok(waits <= 5, `${waits} s`)
})

t.test('an error with text that jsonb rejects is retried too', async (t) => {
  const { service, database, deps, team } = await worldOf(await renewed())
  const ref = { team_id: team.id, upsert_id: uuidv7() }
  await database.transaction((tx) => deps.queue.enqueue(tx, 'upsert-contacts', [ref]))
  const words = `NUL \0, a lone \ud83d, and a pair at the end ${'x'.repeat(460)}`
  const handle = () => Promise.reject(new Error(`${words}😀`))
  const queue = await openConsumer(service.url, { connections: 3, onError: () => {} })
  const claims = queue.claims('upsert-contacts')
  const own = { ...deps, queue, pauses: createQueuePauses(database) } as unknown as WorkerDeps
  const loop = runBatches('upsert-contacts', { handle, batchSize: 1 }, claims, own)
  const job = () =>
    database.one(sql.type(row({ state: string(), output: mixed<{ reason: string }>().nullable() }))`
      select state::text, output from pgboss.job where name = 'upsert-contacts'`)
  await until('it is to be tried again', async () => (await job()).state === 'retry')
  t.match((await job()).output?.reason, /^NUL {2}, a lone \ufffd, and a pair at the end x+$/)
  queue.close()
  await loop
  await queue.stop(1_000)
})
