/**
 * An upgrade in the order of db/README.md, *Upgrading*: release, workers, web. And a rollback: web, workers.
 * Uses real processes of this version and a next one, which accepts things that this version's workers
 * don't know.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { number, string } from 'yup'
import {
  insertBackgroundJob,
  latestBackgroundJobs,
} from '../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { row } from '../../db/postgres/rows.ts'
import { queueStatus } from '../../db/queue/jobs.sql.ts'
import { startApi } from '../support/api-process.ts'
import { shows, signedIn } from '../support/dashboard.ts'
import { nextVersion } from '../support/next-version.ts'
import { anEmail, world } from '../support/service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t from '../support/tap.ts'
import { startProcess, until } from '../support/worker.ts'

const next = await nextVersion(t)
const { service, database, url, team } = await world(t, { team: { plan: 'pro' } })
const sink = await startSmtpSink(t)

type Sources = typeof next | null

/** Starts a worker of this version or the next one. */
const worker = (of: Sources) =>
  startProcess(t, 'workers/main.ts', { DATABASE_URL: url, SMTP_URL: sink.url }, of?.root)

/** Starts a web process of this version or the next one. */
const web = (of: Sources) => startApi(t, url, {}, of?.root)

type Running = { kill(signal: NodeJS.Signals): void; exited: Promise<number | string> }

async function stop({ kill, exited }: Running): Promise<void> {
  kill('SIGTERM')
  t.equal(await exited, 0)
}

/** Sends one email. @returns its ID. */
async function send({ call }: Awaited<ReturnType<typeof web>>): Promise<string> {
  const { status, body } = await call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  t.equal(status, 201)
  return body.id
}

const arrived = (id: string): number =>
  sink.messages().filter(({ raw }) => raw.toString('latin1').includes(`<${id}@`)).length

const isSent = (id: string) => until(`${id} is sent`, () => arrived(id) === 1)

/** A job's row in its queue. */
const jobOf = (id: string) =>
  database.one(sql.type(row({ state: string(), seconds: number() }))`
    select state, extract(epoch from start_after - now())::float8 as seconds from pgboss.job where id = ${id}`)

/** Waits until a worker has claimed a job and released it. */
const isLeft = (id: string) =>
  until(`${id} is left`, async () => {
    const { state, seconds } = await jobOf(id)
    return state === 'created' && seconds > 10
  })

/**
 * Waits, and makes released jobs due immediately instead of within a minute, because an older worker can
 * release them many times.
 */
const hurryUntil = (what: string, holds: () => Promise<boolean>) =>
  until(what, async () => {
    await database.query(sql.unsafe`update pgboss.job set start_after = now() where state < 'active'`)
    return holds()
  })

const dead = async () => (await queueStatus(database)).filter((queue) => queue.dead + queue.failed > 0)

t.test("a version newer than the schema doesn't start", async (t) => {
  await t.rejects(web(next), /api\/main\.ts could not start/)
  await t.rejects(worker(next), /workers\/main\.ts could not start/)
})

type Web = Awaited<ReturnType<typeof web>>
type Worker = Awaited<ReturnType<typeof worker>>
/** Processes that several tests share, because each start needs a second. */
const running: { oldWeb?: Web; newWeb?: Web; newWorker?: Worker } = {}
function kept<T>(one: T | undefined): T {
  if (one === undefined) throw new Error('the test before has left no process')
  return one
}

t.test('an upgrade sends everything exactly once', async (t) => {
  const [oldWeb, oldWorker] = [await web(null), await worker(null)]
  await isSent(await send(oldWeb))

  await next.release(url)
  t.equal((await oldWeb.call('GET', '/ready')).status, 200)
  await isSent(await send(oldWeb))
  const restarted = await web(null)
  t.equal((await restarted.call('GET', '/ready')).status, 200, 'this version starts on the newer schema')

  const newWorker = await worker(next)
  await stop(oldWorker)
  await isSent(await send(oldWeb))

  const newWeb = await web(next)
  await stop(oldWeb)
  await isSent(await send(newWeb))
  await stop(newWorker)
  t.strictSame(await dead(), [])
  Object.assign(running, { oldWeb: restarted, newWeb })
})

t.test("an older worker leaves a newer version's messages", async (t) => {
  const [newWeb, oldWeb] = [kept(running.newWeb), kept(running.oldWeb)]
  const oldWorker = await worker(null)
  const email = await send(newWeb)
  await isLeft(email)
  t.equal(arrived(email), 0)

  const job = { id: uuidv7(), team_id: team.id, kind: 'next.kind', given: {}, total: 1, begun_by: 'someone' }
  await database.transaction(async (tx) => {
    await insertBackgroundJob(tx, job, new Date())
    await service.deps.queue.enqueue(tx, 'run-background-job', [{ background_job_id: job.id }])
  })
  await isLeft(job.id)
  t.match(await latestBackgroundJobs(database, team.id, 1), [
    { id: job.id, finished_at: null, fault: null, done: 0 },
  ])
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  shows(t, await owner.get(`/teams/${team.id}/background-jobs`), 'next.kind')
  shows(t, await owner.get(`/teams/${team.id}/background-jobs/${job.id}`), 'next.kind')

  const thing = uuidv7()
  await database.query(sql.unsafe`
    insert into pgboss.job (name, id, data) values ('next-thing', ${thing}, ${JSON.stringify({ check_id: thing })})`)

  const known = await send(oldWeb)
  await isSent(known)
  t.match(await jobOf(thing), { state: 'created' }, 'a queue that it does not know')
  t.strictSame(await dead(), [])

  const newWorker = await worker(next)
  await hurryUntil(`${email} is sent`, async () => arrived(email) === 1)
  await hurryUntil(
    'the background job is done',
    async () => (await latestBackgroundJobs(database, team.id, 1))[0]?.finished_at !== null,
  )
  t.match(await latestBackgroundJobs(database, team.id, 1), [{ fault: null, done: 1 }])
  const isOver = async () => (await jobOf(thing)).state === 'completed'
  await until('the job of the new queue is over', () => isOver().catch(() => true))
  for (const each of [oldWeb, oldWorker]) await stop(each)
  t.equal(arrived(email), 1)
  t.strictSame(await dead(), [])
  running.newWorker = newWorker
})

t.test('a downgrade drains waiting messages first', async (t) => {
  const [newWeb, newWorker] = [kept(running.newWeb), kept(running.newWorker)]
  const before = await send(newWeb)
  const oldWeb = await web(null)
  await stop(newWeb)
  const meanwhile = await send(oldWeb)
  await isSent(before)
  await isSent(meanwhile)
  const oldWorker = await worker(null)
  await stop(newWorker)
  await isSent(await send(oldWeb))
  await stop(oldWeb)
  await stop(oldWorker)
  t.strictSame(await dead(), [])
})
