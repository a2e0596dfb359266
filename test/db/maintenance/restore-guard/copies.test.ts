/** A copy of the database sends nothing, of any kind, until it is resumed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { watchDatabase } from '../../../../db/maintenance/restore-guard/restore-guard.ts'
import { adminCli } from '../../../support/admin.ts'
import { startApi } from '../../../support/api-process.ts'
import { broadcastingOf, PUBLIC_URL } from '../../../support/broadcasting.ts'
import { startCloud } from '../../../support/cloud.ts'
import { copyDatabase } from '../../../support/copies.ts'
import { signedIn, visitor } from '../../../support/dashboard.ts'
import { testDatabase } from '../../../support/database.ts'
import { silentLog } from '../../../support/log.ts'
import { openPool } from '../../../support/pool.ts'
import { startReceiver } from '../../../support/receiver.ts'
import { anEmail, makeTeam, sendEmail, startService, world } from '../../../support/service.ts'
import { startSmtpSink } from '../../../support/smtp-sink.ts'
import t, { type Test } from '../../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../../support/whatsapp.ts'
import { startProcess, startWorker, until } from '../../../support/worker.ts'

const DELIVERIES = [
  ...['deliver-broadcast', 'deliver-email', 'deliver-test', 'deliver-test-whatsapp'],
  ...['deliver-webhook', 'deliver-whatsapp', 'deliver-whatsapp-number', 'deliver-whatsapp-parts'],
]
const ALLOWED = { WEBHOOK_ALLOW: '127.0.0.0/8' }
const PERSON = 'ana@example.com'

type Seeded = { url: string; team: string; staging: string; running: string; scheduled: string }

/** Creates a database in which something of each kind waits to be sent. All connections are closed. */
async function seed(t: Test, webhook: string): Promise<Seeded> {
  const { url } = await testDatabase(t)
  const seeded = { url, team: '', staging: '', running: '', scheduled: '' }
  await t.test('what waits', async (t) => {
    const dashboard = { from: 'Heliograph <login@example.com>' }
    const service = await startService(t, { url, publicUrl: PUBLIC_URL, dashboard })
    const { database } = service
    const { end } = await watchDatabase({ database, log: silentLog })
    await end()
    const team = await makeTeam(service)
    const cli = adminCli({ DATABASE_URL: url, ...ALLOWED })
    await cli.json(['webhook', 'add', team.id, '--url', webhook])
    const { create, contacts, post } = await broadcastingOf(service, team)
    await contacts(['cleo', 'dan'])
    const [running, scheduled] = [await create(), await create()]
    await post(running, 'send')
    await post(scheduled, 'send', { send_at: new Date(Date.now() + 3_600_000).toISOString() })
    await sendEmail(service, team)
    const { id } = await makeTemplate(service, team.id)
    await sendWhatsapp(service, team, id)
    await signedIn(service, { team: team.id, role: 'viewer', email: PERSON })
    await visitor(service).post('/login', { email: PERSON })
    const staging = await makeTeam(service, { test: true })
    await sendEmail(service, staging)
    const template = await makeTemplate(service, staging.id)
    await sendWhatsapp(service, staging, template.id)
    Object.assign(seeded, { team: team.id, staging: staging.id, running, scheduled })
  })
  return seeded
}

const receiver = await startReceiver(t)
const seeded = await seed(t, receiver.url)

const queuesOf = async (url: string) =>
  (await adminCli({ DATABASE_URL: url }).json(['queue', 'status'])) as Record<string, unknown>[]

const restoredQueues = async (url: string): Promise<unknown[]> =>
  (await queuesOf(url))
    .filter(({ pause_reason }) => pause_reason === 'restored')
    .map(({ queue }) => queue)
    .sort()

async function broadcastsOf(url: string) {
  const { team, running, scheduled } = seeded
  const cli = adminCli({ DATABASE_URL: url, PUBLIC_URL })
  const states: string[] = []
  for (const id of [running, scheduled]) {
    const { state, state_reason } = await cli.json(['broadcast', 'show', team, id])
    states.push(`${state} ${state_reason}`)
  }
  return states
}

/** In this time, a worker would have sent everything several times, in milliseconds. */
const LONG = 4_000

t.test('a restored copy sends nothing until it is resumed', async (t) => {
  const cloud = await startCloud(t)
  const sink = await startSmtpSink(t)
  const url = await copyDatabase(t, seeded.url)
  const recipients = () => sink.recipients().flat()
  const arrived = () => [recipients().length, cloud.messages().length, receiver.received.length]
  await startProcess(t, 'workers/main.ts', {
    ...{ DATABASE_URL: url, SMTP_URL: sink.url, ...ALLOWED, ...cloud.env },
  })
  /** Returns the states of the test team's messages. */
  const staged = async (): Promise<string[]> => {
    const cli = adminCli({ DATABASE_URL: url, PUBLIC_URL })
    const lists = [
      await cli.json(['email', 'list', seeded.staging]),
      await cli.json(['whatsapp', 'list', seeded.staging]),
    ]
    return lists.flat().map(({ status }: { status: string }) => status)
  }
  t.strictSame(await restoredQueues(url), DELIVERIES)
  t.ok((await queuesOf(url)).every(({ paused, paused_at }) => paused === (paused_at !== null)))
  t.strictSame(await broadcastsOf(url), ['paused restored', 'paused restored'])
  await sleep(LONG)
  t.strictSame(arrived(), [0, 0, 0])
  t.strictSame(await staged(), ['queued', 'queued'])

  const resumed = await adminCli({ DATABASE_URL: url }).json(['queue', 'resume', '--restored'])
  t.strictSame(resumed, { queues: DELIVERIES, broadcasts: 2 })
  t.strictSame(await restoredQueues(url), [])
  t.strictSame((await broadcastsOf(url))[1], 'scheduled null')
  await until('all of it is sent', () => {
    const [mails = 0, messages = 0, webhooks = 0] = arrived()
    return mails >= 4 && messages >= 1 && webhooks >= 1
  })
  t.ok(recipients().includes(PERSON), 'the sign-in mail too')
  await until('the simulator has the test team’s', async () =>
    (await staged()).every((status) => status === 'delivered'),
  )
  t.equal(arrived()[0], 4, 'one mail each, and none of the test team')
  t.equal(arrived()[1], 1)
})

t.test('a copy is paused even without workers', async (t) => {
  const url = await copyDatabase(t, seeded.url)
  t.strictSame(await restoredQueues(url), DELIVERIES, 'no process has run here')
  const api = await startApi(t, url)
  t.strictSame(await broadcastsOf(url), ['paused restored', 'paused restored'])
  t.ok((await queuesOf(url)).some(({ paused_at }) => paused_at !== null))
  await adminCli({ DATABASE_URL: url }).json(['queue', 'resume', '--restored'])
  const again = await adminCli({ DATABASE_URL: url }).json(['queue', 'resume', '--restored'])
  t.strictSame(again, { queues: [], broadcasts: 0 })
  api.kill('SIGTERM')
  t.equal(await api.exited, 0)
  await startApi(t, url)
  t.strictSame(await restoredQueues(url), [], 'a process that starts later finds it resumed')
})

t.test('a copy can be resumed before any process has run', async (t) => {
  const url = await copyDatabase(t, seeded.url)
  const resumed = await adminCli({ DATABASE_URL: url }).json(['queue', 'resume', '--restored'])
  t.strictSame(resumed, { queues: DELIVERIES, broadcasts: 2 })
  await startApi(t, url)
  t.strictSame(await restoredQueues(url), [])
  t.strictSame(await broadcastsOf(url), ['sending null', 'scheduled null'])
})

t.test('after a failover, only older processes continue', async (t) => {
  const url = await copyDatabase(t, seeded.url)
  await adminCli({ DATABASE_URL: url }).json(['queue', 'resume', '--restored'])
  const database = await openPool(t, url, { size: 3 })
  // The check must run before the decision, which needs a moment on a busy machine.
  const times = { every: 50, hold: 2_000, patience: 4_000 }
  const watch = async () => {
    const { end } = await watchDatabase({ database, log: silentLog }, times)
    t.teardown(end)
    return end
  }
  const failOver = () => database.query(sql.unsafe`update database_home set timeline = '0000000A'`)
  const settled = async () =>
    database.oneFirst(sql.unsafe`select how || ' ' || is_at_home()::text from database_home`)

  const endFirst = await watch()
  await sleep(200)
  await failOver()
  t.strictSame(await restoredQueues(url), DELIVERIES, 'nothing leaves before it is settled')
  await until('it has gone on', async () => (await settled()) === 'continued true')
  t.strictSame(await restoredQueues(url), [])
  await endFirst()

  await failOver()
  await watch()
  await until('it is stopped', async () => (await settled()) === 'restored true')
  t.strictSame(await restoredQueues(url), DELIVERIES)
})

t.test('releases jobs that are claimed before a failover is decided', async (t) => {
  const { service, database, call, team } = await world(t)
  const sink = await startSmtpSink(t)
  const { end } = await watchDatabase({ database, log: silentLog })
  await end()
  const setTimeline = (to: string) => database.query(sql.unsafe`update database_home set timeline = ${to}`)
  const own = String(await database.oneFirst(sql.unsafe`select timeline from database_home`))
  await setTimeline('0000000A')
  await startWorker(t, service, { smtp_url: sink.url, pauses: async () => false })
  await call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  await sleep(2_000)
  t.equal(sink.messages().length, 0)
  await setTimeline(own)
  await until('it is sent', () => sink.messages().length === 1)
})

t.test('manual pauses stay after a restore', async (t) => {
  await adminCli({ DATABASE_URL: seeded.url }).json(['queue', 'pause', 'deliver-whatsapp'])
  const url = await copyDatabase(t, seeded.url)
  await startApi(t, url)
  await adminCli({ DATABASE_URL: url }).json(['queue', 'pause', 'deliver-webhook'])
  const { queues } = await adminCli({ DATABASE_URL: url }).json(['queue', 'resume', '--restored'])
  t.strictSame(queues, [
    ...[
      'deliver-broadcast',
      'deliver-email',
      'deliver-test',
      'deliver-test-whatsapp',
      'deliver-whatsapp-number',
    ],
  ])
  const paused = (await queuesOf(url)).filter((each) => each.paused)
  const pausedQueues = paused.map(({ queue }) => queue).sort()
  t.strictSame(pausedQueues, ['deliver-webhook', 'deliver-whatsapp', 'deliver-whatsapp-parts'])
  for (const each of paused) t.match(each, { paused_at: /^2/, paused_by: 'cli', pause_reason: null })
})
