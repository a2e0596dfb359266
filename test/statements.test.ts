/**
 * The number of statements for accepting, sending and ingesting: a few per batch, whatever its content.
 * Statements that pass a proxy are counted. Claims and their heartbeats have separate connections and don't
 * count. Related: test/api/emails-batch.test.ts (batches), test/api/attachment-refusals.test.ts (complete
 * calls with files), test/workers/jobs/ingest-report.test.ts (a thousand reports),
 * test/workers/channels/webhook-contents.test.ts (teams without webhooks).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import type { Batcher } from '../api/http/batcher.ts'
import { withLoaded } from '../db/content/files/load.ts'
import { acceptEmails } from '../db/messages/emails/accept.ts'
import { returnPath } from '../db/messages/emails/return-path.ts'
import { openDatabase } from '../db/postgres/pool.ts'
import { adminCli } from './support/admin.ts'
import { sha } from './support/attachments.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { openPool } from './support/pool.ts'
import { storedReports, storeEmails } from './support/reports.ts'
import { lockWaits, rowCounts, sentCount } from './support/rows.ts'
import { anEmail, makeTeam, type Reply, SMTP_REPORT_TOKEN, startService, world } from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import { anItem } from './support/stored-emails.ts'
import t, { type Test } from './support/tap.ts'
import { beginWebhooks, happen } from './support/webhooks.ts'
import { startWorker, until, withoutSchedules } from './support/worker.ts'

/** A service, the same service through a counting proxy, and workers whose statements are counted. */
async function begin(t: Test) {
  const service = await startService(t)
  await withoutSchedules(service)
  const proxy = await startDatabaseProxy(t, service.url)
  const counted = await startService(t, { url: proxy.url, wake: () => {}, lockTimeout: 60_000 })
  const { accepts } = counted.deps
  let came = 0
  const noted =
    <C, O>(accept: Batcher<C, O>): Batcher<C, O> =>
    (call) => {
      came += 1
      return accept(call)
    }
  counted.deps.accepts = { ...accepts, email: noted(accepts.email), report: noted(accepts.report) }
  /** Starts calls while a table is locked, until all of them wait for the lock or for each other. */
  const together = async (table: string, calls: readonly (() => Promise<Reply>)[]): Promise<Reply[]> => {
    const holder = new Client({ connectionString: service.url })
    await holder.connect()
    try {
      await holder.query(`begin; lock table ${table} in exclusive mode`)
      const before = came
      const replies = Promise.all(calls.map((call) => call()))
      await until('all came', async () => came === before + calls.length && (await lockWaits(service)) > 0)
      await holder.query('rollback')
      return await replies
    } finally {
      await holder.end()
    }
  }
  const work = async (smtp_url?: string) => {
    const database = await openPool(t, proxy.url, { size: 4 })
    return startWorker(t, service, { database, ...(smtp_url === undefined ? {} : { smtp_url }) })
  }
  return { service, counted, proxy, work, together }
}

/**
 * The maximum per batch of sends or reports: authentication, BEGIN, references, lock, rows, jobs, COMMIT and
 * so on.
 */
const A_BATCH = 10

t.test('combined single sends need as many statements as two', async (t) => {
  const { service, counted, proxy, together } = await begin(t)
  const team = await makeTeam(service)
  const send = () => counted.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  await send()
  const cost = (count: number) =>
    proxy.during(async () => {
      const replies = await together('allowances', Array<typeof send>(count).fill(send))
      for (const { status } of replies) t.equal(status, 201)
    })
  const two = await cost(2)
  const many = await cost(40)
  // The first batches start before all have arrived. Separately, they would cost ten times as much.
  t.ok(many <= two + 2 * A_BATCH, `${many} beside ${two}`)
  t.strictSame(await rowCounts(service, team.id), { emails: 43, jobs: 43 })
})

/**
 * Accepts copies of an email with files of these bytes.
 * @returns the number of round trips of the transaction.
 */
async function acceptCost(
  { counted, proxy }: Awaited<ReturnType<typeof begin>>,
  team_id: string,
  { files, copies = 1 }: { files: readonly Buffer[]; copies?: number },
): Promise<number> {
  const { database, deps } = counted
  // Reading the queue's position would need a statement now and then.
  const queue = { storing: deps.queue.storing, reached: async () => 1 }
  const named = files.map((bytes) => ({ bytes, sha256: sha(bytes) }))
  const contents = new Map(named.map(({ bytes, sha256 }) => [sha256, bytes]))
  return withLoaded(database, team_id, { contents, uses: [] }, (loaded) => {
    const attachments = named.map(({ bytes, sha256 }) => ({
      ...{ filename: 'a', content_type: 'text/plain', content_id: null },
      ...{ sha256, size: bytes.length, loaded: loaded.get(sha256) ?? null },
    }))
    const from = { name: null, address: 'hello@example.com', domain: 'example.com' }
    const item = anItem({ from, ...(files.length > 0 ? { attachments } : {}) })
    return proxy.during(() =>
      database.transaction(async (tx) => {
        const sender = { team_id, domain: null }
        const items = Array.from({ length: copies }, () => item)
        const ends = await acceptEmails({ tx, queue, versions: deps.versions, last: true }, sender, items)
        if (ends.some(({ kind }) => kind !== 'stored')) throw new Error(JSON.stringify(ends))
      }),
    )
  })
}

t.test('a connection parses the statements of an accept once', async (t) => {
  const { service, team_id } = await world(t)
  const { database, deps } = service
  const from = { name: null, address: 'hello@example.com', domain: 'example.com' }
  const preparedRow = object({ statement: string().defined() })
  const prepared = await database.transaction(async (tx) => {
    const { queue, versions } = deps
    const ends = await acceptEmails({ tx, queue, versions }, { team_id, domain: null }, [anItem({ from })])
    t.match(ends, [{ kind: 'stored' }])
    return tx.anyFirst(sql.type(preparedRow)`select statement from pg_prepared_statements`)
  })
  for (const table of ['allowances', 'accepted_emails', 'pgboss\\.']) {
    const stores = new RegExp(`(insert into|update) ${table}`, 'i')
    t.ok(
      prepared.some((statement) => stores.test(statement)),
      table,
    )
  }
})

t.test('attachments add two round trips to an accept', async (t) => {
  const place = await begin(t)
  const team = await makeTeam(place.service)
  const files = (count: number, name: string) =>
    Array.from({ length: count }, (_, index) => Buffer.from(`${name} ${index}`))
  const accept = (count: number, name: string, copies = 1) =>
    acceptCost(place, team.id, { files: files(count, name), copies })
  await accept(1, 'first')
  const none = await accept(0, '')
  // BEGIN and references, locks, rows with their charges, jobs and COMMIT. No item has a key to look up.
  t.equal(none, 3)
  t.equal(await accept(0, '', 100), none)
  // Their contents, and COMMIT by itself.
  t.equal(await accept(1, 'new'), none + 2)
  t.equal(await accept(1, 'new'), none + 2)
  t.equal(await accept(20, 'many', 100), none + 2)
  const row = object({ files: number().defined(), needs: number().defined(), used: number().defined() })
  const stored = await place.service.database.one(sql.type(row)`
    select (select count(*) from files where state = 'ready') as files,
      (select count(*) from email_files) as needs, (select storage_used from allowances) as used`)
  const bytes = [...files(1, 'first'), ...files(1, 'new'), ...files(20, 'many')]
  t.strictSame(stored, { files: 22, needs: 2_003, used: Buffer.concat(bytes).length })
})

t.test('combined reports need as many statements as two', async (t) => {
  const { service, counted, proxy, together } = await begin(t)
  const ref = { team_id: '0190a1b2-0000-7000-8000-00000000000a', id: '0190a1b2-0000-7000-8000-00000000000b' }
  const to = returnPath(service.deps.secrets, ref, 'bounces.example.com') ?? ''
  const report = (text: string) =>
    counted.call('POST', '/hooks/smtp', {
      raw: new Uint8Array(Buffer.from(`To: ${to}\r\nSubject: ${text}\r\n\r\n`)),
      headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' },
    })
  await report('first')
  const cost = (count: number) =>
    proxy.during(async () => {
      const calls = Array.from({ length: count }, (_, index) => () => report(`${count}.${index}`))
      for (const { status } of await together('reports', calls)) t.equal(status, 200)
    })
  const two = await cost(2)
  const many = await cost(40)
  // The first batches start before all have arrived. Separately, they would cost ten times as much.
  t.ok(many <= two + 2 * A_BATCH, `${many} beside ${two}`)
  t.equal((await storedReports(service)).length, 43)
})

t.test('twenty concurrent emails share a few statements', async (t) => {
  const { service, counted, proxy, work } = await begin(t)
  const team = await makeTeam(service)
  const mails = 200
  let waiting: (() => void)[] = []
  // Twenty responses arrive together, as from a relay that is slower than a connection.
  const sink = await startSmtpSink(t, {
    onMessage: () =>
      new Promise((resolve) => {
        waiting.push(() => resolve(undefined))
        if (waiting.length < 20) return
        for (const answer of waiting) answer()
        waiting = []
      }),
  })
  const emails = Array.from({ length: 100 }, () => anEmail())
  for (const _ of [1, 2]) await counted.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  const cost = await proxy.during(async () => {
    const worker = await work(sink.url)
    await until('all are sent', async () => (await sentCount(service, team.id)) === mails)
    await worker.stop()
  })
  // Per twenty emails: the read ahead, BEGIN, timeouts, rows, events, states, jobs and COMMIT.
  t.ok(cost < 320, `${mails} mails: ${cost}`)
})

t.test('1,000 upserts need as many statements as one', async (t) => {
  const { service, counted, proxy, work } = await begin(t)
  const team = await makeTeam(service)
  await work()
  let calls = 0
  const upsert = async (count: number) => {
    calls += 1
    const contacts = Array.from({ length: count }, (_, index) => ({ email: `${calls}.${index}@example.org` }))
    const { status } = await counted.call('POST', '/v1/contacts/bulk', { key: team.key, body: { contacts } })
    t.equal(status, 200)
  }
  // Polls also pass. A second, idle run of the same length counts them.
  const costOnce = async (count: number) => {
    const began = performance.now()
    const all = await proxy.during(() => upsert(count))
    const took = performance.now() - began
    return all - (await proxy.during(() => sleep(took)))
  }
  const cost = async (count: number) =>
    Math.min(await costOnce(count), await costOnce(count), await costOnce(count))
  await upsert(2)
  const one = await cost(1)
  const many = await cost(1_000)
  // Polls that only happen in one of the measurements add about a dozen. A statement per ten contacts would
  // add 100.
  t.ok(many <= one + 20, `${many} beside ${one}`)
})

t.test('concurrent webhooks to one endpoint share a few statements', async (t) => {
  const { service, proxy, work } = await begin(t)
  const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
  const { team, receiver } = await beginWebhooks(t, { service, cli }, { types: 'email.delivered' })
  const rows = { database: await openDatabase(service.url, { size: 2 }) }
  t.teardown(() => rows.database.end())
  const ids = await storeEmails(rows, team.id, Array(100).fill(['a@example.org']))
  for (const id of ids) await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  const cost = await proxy.during(async () => {
    const worker = await work()
    await until('all are taken', () => receiver.received.length === 100)
    await worker.stop()
  })
  // Four concurrent messages share statements. Separately, each would need eight.
  t.ok(cost < 250, `100 webhooks: ${cost}`)
})
