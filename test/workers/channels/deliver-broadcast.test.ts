/** Delivery of broadcast emails: consent just before sending, pauses, and a separate rate and sender. */
import { sql } from 'slonik'
import { awaitCheck, requestCheck } from '../../../db/delivery/senders/check.ts'
import { autoPauseReason } from '../../../db/messages/broadcasts/auto-pause.ts'
import { isUnderWay } from '../../../db/messages/broadcasts/waiting.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { beside } from '../../../workers/adapters.ts'
import { adminCli } from '../../support/admin.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { shiftClock, stopClock } from '../../support/clock.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { jobStates, sendersOf, setJobsDue, usedBy } from '../../support/rows.ts'
import { anEmail, METRICS_TOKEN, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { provide } from '../../support/smtp-provider.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { happen } from '../../support/webhooks.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

async function begin(t: Test, script: Parameters<typeof startSmtpSink>[1] = {}) {
  const { service, team } = await worldOf(await renewed())
  const sink = await startSmtpSink(t, script)
  const received = () => sink.recipients().flat()
  return { service, team, sink, received }
}

t.test('skips a recipient without consent, with a reason', async (t) => {
  const { service, team, sink, received } = await begin(t)
  const { database, call } = service
  const broadcast = await aBroadcast(service, team)
  const addresses = ['stays', 'unsubscribed', 'left', 'suppressed', 'deleted'].map(
    (who) => `${who}@example.com`,
  )
  await broadcast.emails(...addresses)
  const asked = (method: string, who: string, rest = '', body?: unknown) =>
    call(method, `/v1/contacts/${who}@example.com${rest}`, { key: team.key, ...(body ? { body } : {}) })
  await asked('POST', 'unsubscribed', '/unsubscribe')
  await asked('PATCH', 'left', '', { topic_ids: [] })
  await asked('DELETE', 'deleted')
  await database.query(sql.unsafe`
    update contacts set status = 'bounced', suppression = 'bounced' where email = 'suppressed@example.com'`)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('all had their turn', async () => (await broadcast.figures()).queued === undefined)
  t.same(received(), ['stays@example.com'])
  t.same(await broadcast.figures(), { made: 1, skipped: 4, sent: 1 })
  t.same(await broadcast.skips(), {
    'unsubscribed@example.com': 'unsubscribed',
    'left@example.com': 'left_topic',
    'suppressed@example.com': 'suppressed',
    'deleted@example.com': 'deleted',
  })
  t.match(await usedBy(service, team.id), { emails: 1 }, 'their places in the quota are free again')
})

t.test("an email that may have arrived isn't resent", async (t) => {
  const { service, team, sink, received } = await begin(t)
  const { database, call } = service
  const broadcast = await aBroadcast(service, team)
  const [id = ''] = await broadcast.emails('ana@example.com')
  await happen(service, { team_id: team.id, email_id: id, kind: 'unknown', detail: 'no answer' })
  await call('POST', '/v1/contacts/ana@example.com/unsubscribe', { key: team.key })
  const key = { team_id: team.id, id: broadcast.id }
  t.ok(await isUnderWay(database, key))
  await startWorker(t, service, { smtp_url: sink.url })
  await until('nothing of it waits', async () => !(await isUnderWay(database, key)))
  const last = (await eventsOfEmail(database, team.id, id)).findLast(({ kind }) => kind === 'gave_up')
  t.match(last?.detail, /no response.*may have arrived.*unsubscribed/)
  t.same([received(), await broadcast.figures()], [[], { made: 1, queued: 1 }])
  // A manual requeue restarts its attempts, but the outcome of the first one is still unknown.
  const cli = adminCli({ DATABASE_URL: service.url })
  await cli.json(['queue', 'redrive', 'deliver-broadcast'])
  await until('nothing of it waits again', async () => !(await isUnderWay(database, key)))
  t.same([received(), await broadcast.figures()], [[], { made: 1, queued: 1 }])
})

t.test('a paused broadcast waits, a cancelled one is deleted', async (t) => {
  const { service, team, sink, received } = await begin(t)
  const [paused, cancelled] = [await aBroadcast(service, team), await aBroadcast(service, team)]
  const [id = ''] = await paused.emails('waits@example.com')
  await cancelled.emails('one@example.com', 'two@example.com')
  await paused.become('paused')
  await cancelled.become('cancelled')
  await startWorker(t, service, { smtp_url: sink.url })
  await until('the cancelled ones are gone', async () => (await cancelled.figures()).skipped === 2)
  t.same(await cancelled.skips(), { 'one@example.com': 'cancelled', 'two@example.com': 'cancelled' })
  await until('the paused one was put off', async () => (await paused.waitOf(id)) > 30)
  t.same(received(), [])
  const resumed = await service.call('POST', `/v1/broadcasts/${paused.id}/resume`, { key: team.key })
  t.equal(resumed.status, 200)
  await until('it goes', () => received().length === 1)
  t.same(received(), ['waits@example.com'])
})

t.test('a broadcast’s pause doesn’t count towards its emails’ 24 hours', async (t) => {
  const { service, team } = await begin(t)
  const { database, call } = service
  const sink = await startSmtpSink(t, { onRcpt: () => '451 4.7.1 Greylisted' })
  const broadcast = await aBroadcast(service, team)
  const [id = ''] = await broadcast.emails('ana@example.com')
  const kinds = async () => (await eventsOfEmail(database, team.id, id)).map(({ kind }) => kind)
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  await until('it is put off', async () => (await jobStates(service, id))[0] === 'retry')
  await worker.stop()
  const path = `/v1/broadcasts/${broadcast.id}`
  t.equal((await call('POST', `${path}/pause`, { key: team.key })).status, 200)
  await shiftClock(database, 30 * 3_600)
  t.equal((await call('POST', `${path}/resume`, { key: team.key })).status, 200)
  const tries = (await kinds()).length
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it is tried again', async () => (await kinds()).length > tries)
  t.notOk((await kinds()).includes('bounced'))
  await until('it waits for another try', async () => (await jobStates(service, id))[0] === 'retry')
  await shiftClock(database, 60 * 3_600)
  await setJobsDue(service, id)
  await until('it is bounced', async () => (await kinds()).includes('bounced'))
})

t.test('a broadcast’s own rate delays nothing else', async (t) => {
  const { service, team, sink, received } = await begin(t)
  const rated = await aBroadcast(service, team, { rate_per_minute: 60 })
  const free = await aBroadcast(service, team)
  await rated.emails(...Array.from({ length: 4 }, (_, at) => `rated-${at}@example.com`))
  await free.emails(...Array.from({ length: 10 }, (_, at) => `free-${at}@example.com`))
  const start = Date.now()
  await stopClock(service.database, new Date(start))
  await startWorker(t, service, { smtp_url: sink.url })
  await until('the others are sent', async () => (await free.figures()).sent === 10)
  for (const seconds of [0, 1, 2, 3]) {
    await stopClock(service.database, new Date(start + seconds * 1_000))
    await until('one more is sent', async () => (await rated.figures()).sent === seconds + 1)
  }
  t.same(received().length, 14)
})

t.test('a server that defers broadcasts doesn’t slow single emails', async (t) => {
  const onRcpt = (to: string) => (to.startsWith('bulk') ? '421 4.7.0 too many messages from you' : undefined)
  const { service, team, sink, received } = await begin(t, { onRcpt })
  const broadcast = await aBroadcast(service, team)
  await broadcast.emails('bulk@example.com')
  await startWorker(t, service, { smtp_url: sink.url })
  await until('bulk is slowed', async () => (await sendersOf(service)).length > 0)
  await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ to: ['single@example.com'] }) })
  await until('the single email is sent', () => received().includes('single@example.com'))
  for (const { key } of await sendersOf(service)) t.match(key, /:bulk$/)
})

t.test('pauses a broadcast over 5 % bounces, 0.1 % complaints', async (t) => {
  const brakes = { bounce_percent: 5, complaint_percent: 0.1 }
  const on = (left: number, bounced: number, complained: number) =>
    autoPauseReason({ left, bounced, complained }, brakes)
  t.equal(on(199, 199, 0), null)
  t.equal(on(200, 10, 0), null)
  t.equal(on(200, 11, 0), 'bounces')
  t.equal(on(999, 0, 100), null)
  t.equal(on(1_000, 0, 2), null)
  t.equal(on(1_000, 0, 3), 'complaints')
  t.equal(on(3_000, 0, 3), null)
})

t.test('an auto-paused broadcast shows why, and pauses once', async (t) => {
  const { service, team, sink } = await begin(t)
  const broadcast = await aBroadcast(service, team)
  await broadcast.moved({ queued: 100, bounced: 11, delivered: 189 })
  const path = `/v1/broadcasts/${broadcast.id}`
  const show = async () => (await service.call('GET', path, { key: team.key })).body
  await startWorker(t, service, { smtp_url: sink.url })
  await broadcast.walk()
  await until('it is braked', async () => (await show()).state === 'paused')
  t.match(await show(), { state_reason: 'bounces', stats: { bounced: 11, delivered: 189 } })
  const shown = 'Too many of its emails bounced: 5.5 % of 200 emails, limit 5.0 %. Check the addresses'
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  shows(t, await editor.get(`/teams/${team.id}`), `“News” was paused automatically. ${shown}`)
  shows(t, await editor.get(`/teams/${team.id}/broadcasts/${broadcast.id}`), shown)
  const operator = await signedIn(service, { operator: true })
  shows(t, await operator.get('/operator'), `“News” was paused automatically. A team: ${shown}`)
  const { body: metrics } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(metrics, /^heliograph_broadcasts\{state="braked"\} 1$/m)
  t.match(metrics, /^heliograph_broadcasts\{state="paused"\} 0$/m)
  const resumed = await service.call('POST', `${path}/resume`, { key: team.key })
  t.match(resumed.body, { state: 'sending', state_reason: null, stats: { bounced: 11 } })
  t.notMatch(textOf((await editor.get(`/teams/${team.id}`)).html), 'was paused automatically')
  await until('it goes on to its end', async () => (await show()).state === 'sent')
})

t.test('a check also contacts a separate relay of broadcasts', async (t) => {
  const { service, sink } = await begin(t)
  const { database, deps } = service
  const relay = provide(t, { url: 'smtp://127.0.0.1:9' })
  await startWorker(t, service, { smtp_url: sink.url, bulk: beside(relay) })
  const id = await database.transaction((tx) => requestCheck({ ...deps, tx, now: new Date(), actor: 'cli' }))
  t.match(await awaitCheck(database, id), { sender: /127\.0\.0\.1:9.*:bulk$/, fault: /ECONNREFUSED/ })
  const asked = await adminCli({ DATABASE_URL: service.url }).run(['sender', 'check'])
  t.strictSame([asked.code, asked.stderr], [1, ''])
  t.match(JSON.parse(asked.stdout), { fault: /ECONNREFUSED/ })
})

t.test('broadcasts use half the slots, and stop for pauses', async (t) => {
  const gate = Promise.withResolvers<void>()
  let inFlight = 0
  const onMessage = async ({ rcpt_to }: { rcpt_to: string[] }) => {
    if (!rcpt_to[0]?.startsWith('bulk')) return undefined
    inFlight += 1
    await gate.promise
    return undefined
  }
  const { service, team, sink, received } = await begin(t, { onMessage })
  const { call } = service
  const broadcast = await aBroadcast(service, team)
  const ids = await broadcast.emails(...Array.from({ length: 6 }, (_, at) => `bulk-${at}@example.com`))
  await startWorker(t, service, { smtp_url: sink.url, concurrency: 4 })
  await until('half of the slots are held', () => inFlight === 2)
  await call('POST', '/v1/emails', { key: team.key, body: anEmail({ to: ['single@example.com'] }) })
  await until('the single email is sent', () => received().includes('single@example.com'))
  t.equal(inFlight, 2)
  const waiting = await Promise.all(
    ids.map(async (id, at) => ((await broadcast.isWaiting(id)) ? [`bulk-${at}@example.com`] : [])),
  )
  const [leaves = '', ...stay] = waiting.flat()
  t.equal(stay.length, 3)
  const unsubscribed = await call('POST', `/v1/contacts/${leaves}/unsubscribe`, { key: team.key })
  t.equal(unsubscribed.status, 200)
  const path = `/v1/broadcasts/${broadcast.id}`
  t.equal((await call('POST', `${path}/pause`, { key: team.key })).status, 200)
  gate.resolve()
  await until('one is withdrawn, three wait', async () => {
    const { sent, skipped, queued } = await broadcast.figures()
    return sent === 2 && skipped === 1 && queued === 3
  })
  t.equal(inFlight, 2, 'nothing has left since the pause')
  await call('POST', `${path}/resume`, { key: team.key })
  await until('the others are sent', async () => (await broadcast.figures()).sent === 5)
  t.same(await broadcast.skips(), { [leaves]: 'unsubscribed' })
  t.notOk(received().includes(leaves))
})
