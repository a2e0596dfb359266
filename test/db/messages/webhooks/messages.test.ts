/** Single webhooks in the CLI and on pages: search, waiting state, attempts and resends. */
import { sql } from 'slonik'
import { mixed, number, object, string } from 'yup'
import { webhookSentence } from '../../../../api/dashboard/components/sentence.ts'
import { purgeMessages } from '../../../../db/maintenance/retention/purge.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import { TEXTS } from '../../../../db/messages/texts.ts'
import { createNames } from '../../../../db/process/dns.ts'
import { idNow } from '../../../../db/process/ids.ts'
import { networksIn } from '../../../../db/process/public-address.ts'
import { deadLetterQueue, JOBS } from '../../../../db/queue/jobs.ts'
import { formsTo, shows, signedIn, textOf } from '../../../support/dashboard.ts'
import { EMPTY } from '../../../support/empty.ts'
import { storeEmails } from '../../../support/reports.ts'
import { KEPT } from '../../../support/retention.ts'
import { pauseSender } from '../../../support/senders.ts'
import t from '../../../support/tap.ts'
import { anEvent, happen, startWebhooks } from '../../../support/webhooks.ts'
import { startWorker, until } from '../../../support/worker.ts'

const { service, rows, cli, begin } = await startWebhooks(t)
/** The pauses are so long that no retry happens during a test. */
const allowed = networksIn(['127.0.0.0/8'])
const webhooks = { concurrency: 8, allowed, resolve: createNames().addresses, pauses: [3_600, 3_600] }
/** A message is as old as its ID. */
const idsNow = (count: number) => sql.array(Array.from({ length: count }, idNow), 'uuid')

t.test('lists the last response to each event and its next attempt', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  await startWorker(t, service, { webhooks })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = (...rest: string[]) => ['', 'teams', team.id, 'webhooks', endpoint.id, ...rest].join('/')
  const listed = async () => textOf((await owner.get(at('messages'))).html)
  receiver.answer = (_one, response) => void response.writeHead(503).end()
  const { event_id } = await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is attempted', async () =>
    /queued 503 next in .* webhook\.test – just now/.test(await listed()),
  )
  shows(
    t,
    await owner.get(`/teams/${team.id}/webhooks/events`),
    /queued 503 next in (1 hour|\d+ min).* webhook\.test/,
  )
  const page = await owner.get(at())
  shows(
    t,
    page,
    /failing .*All attempts have failed since .* 1 event waits for the next attempt\. If no attempt succeeds by \d+\s\w+, the webhook is disabled\./,
  )
  shows(t, page, /503 retried later webhook\.test/)
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  t.match(await listed(), /failed 503 webhook disabled webhook\.test/)
  shows(
    t,
    await owner.get(at('events', event_id)),
    'Failed after 1 attempt, because the webhook was disabled.',
  )
  await cli.json(['webhook', 'enable', team.id, endpoint.id])
  receiver.answer = (_one, response) => void response.writeHead(410).end()
  const gone = (await cli.json(['webhook', 'test', team.id, endpoint.id])).event_id
  await until('it is gone', async () =>
    /failed 410 the server returned 410 webhook\.test/.test(await listed()),
  )
  shows(t, await owner.get(at('events', gone)), 'Failed after 1 attempt, because the server returned 410.')
  await cli.json(['webhook', 'enable', team.id, endpoint.id])
  receiver.answer = null
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is delivered', async () => /delivered 204 webhook\.test/.test(await listed()))
})

t.test('tells why a failed event is not attempted again', (t) => {
  const failed = (status: number | null) =>
    webhookSentence({ status: 'failed', attempts: [{ at: '', ms: 1, response: '', status }], events: [] })
  t.equal(failed(503), 'Failed after 1 attempt, with no attempts left.')
  t.equal(failed(null), 'Failed after 1 attempt, with no attempts left.')
  t.equal(failed(413), 'Failed after 1 attempt, because the server rejected it.')
  t.end()
})

t.test('shows why a webhook waits, and retries it on request', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  await startWorker(t, service, { webhooks })
  receiver.answer = (_one, response) => void response.writeHead(503).end('not <now>')
  const { event_id } = await cli.json(['webhook', 'test', team.id, endpoint.id])
  const message = () => cli.json(['webhook', 'message', team.id, endpoint.id, event_id])
  await until('it is put off', async () => (await message()).waiting?.state === 'deferred')
  t.match(await message(), {
    ...{ event_id, type: 'webhook.test', status: 'queued', body: /"webhook\.test"/ },
    attempts: [{ status: 503, response: 'not <now>', ms: Number }],
    waiting: { attempts: 1, last_response: 'HTTP 503', paused_senders: EMPTY, queue_paused: false },
  })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = (...rest: string[]) => ['', 'teams', team.id, 'webhooks', endpoint.id, ...rest].join('/')
  const page = await owner.get(at('events', event_id))
  shows(t, page, /Why it waits Attempted 1 time\. Next attempt in .* Last response: HTTP 503/)
  shows(t, page, /Response 503 after .* ms .* not <now>/)
  shows(t, await owner.get(at('messages?status=queued')), 'webhook.test')
  shows(t, await owner.get(at('messages?status=delivered')), 'No event matches.')
  t.equal((await owner.get(at('messages?status=eaten'))).status, 400)
  await cli.json(['team', 'suspend', team.id])
  const suspended = await owner.get(at('events', event_id))
  shows(
    t,
    suspended,
    /Why it waits Nothing goes out, because the team is suspended\. .* Last response: HTTP 503/,
  )
  await cli.json(['team', 'resume', team.id])
  receiver.answer = null
  await owner.post(at('events', event_id, 'requeue'))
  await until('it is taken', async () => (await message()).status === 'delivered')
  const shown = await message()
  t.match(shown, { waiting: null, events: [{ kind: 'requeued' }], attempts: [Object, { status: 204 }] })
  t.match((await owner.post(at('events', event_id, 'requeue'))).status, 400)
  const requeues = (await cli.json(['audit', 'list', '--team', team.id])).filter(
    ({ action }: { action: string }) => action === 'webhook.requeue',
  )
  t.match(requeues, [{ actor: owner.email, detail: `event ${event_id}` }])
  t.equal(requeues.length, 1, 'the press that was refused leaves no line')
  t.equal((await show()).backlog, 0)
  const stranger = await signedIn(service, { operator: true })
  const looks = async () =>
    (await cli.json(['audit', 'list', '--team', team.id])).filter(
      ({ action }: { action: string }) => action === 'webhook.read',
    )
  const { html } = await stranger.get(at('events', event_id))
  t.notMatch(html, /timestamp&quot;:/, 'a page that looks again by itself does not hold what leaves a line')
  t.equal((await looks()).length, 0)
  t.match((await stranger.get(at('events', event_id, 'content'))).html, /timestamp&quot;:/)
  t.match(await looks(), [{ actor: stranger.email, subject: event_id }])
  t.match((await owner.get(at('events', event_id))).html, /timestamp&quot;:/)
})

t.test('shows Retry-After as the reason, and lists such servers separately', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  await startWorker(t, service, { webhooks })
  receiver.answer = (_one, response) => void response.writeHead(429, { 'retry-after': '900' }).end()
  const { event_id } = await cli.json(['webhook', 'test', team.id, endpoint.id])
  const message = () => cli.json(['webhook', 'message', team.id, endpoint.id, event_id])
  const key = `webhook:${endpoint.id}`
  await until('it is paused', async () => (await message()).waiting?.paused_senders.length === 1)
  t.match(await message(), { waiting: { paused_senders: [{ sender: key, reason: 'HTTP 429' }] } })
  const mine = async (...flags: string[]) =>
    (await cli.json(['sender', 'list', ...flags])).filter((one: { key: string }) => one.key === key)
  t.match(await mine('--webhooks'), [{ key, team_id: team.id, reason: 'HTTP 429', name: endpoint.name }])
  t.strictSame(await mine(), [])
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const at = `/teams/${team.id}/webhooks/${endpoint.id}/events/${event_id}`
  shows(t, await viewer.get(at), /Its server asked us to wait until .* HTTP 429/)
  const operator = await signedIn(service, { operator: true })
  shows(t, await operator.get('/operator/senders'), /Paused webhooks .* HTTP 429/)
  t.notMatch(textOf((await operator.get(`/teams/${team.id}`)).html), 'Nothing goes out through webhook:')
  receiver.answer = null
  await operator.post(`/operator/senders/resume?${new URLSearchParams({ key })}`)
  await until('it is taken', async () => (await message()).status === 'delivered')
})

t.test('requeues waiting webhooks, and failed ones with --force', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  const other = await begin(t)
  const ids = await storeEmails(rows, team.id, [['a@example.org'], ['b@example.org']])
  for (const email_id of ids) await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
  const [foreign = ''] = await storeEmails(rows, other.team.id, [['c@example.org']])
  await happen(service, { team_id: other.team.id, email_id: foreign, kind: 'delivered' })
  const requeue = (...flags: string[]) => cli.json(['webhook', 'requeue', team.id, ...flags])
  t.match(await requeue('--type', 'email.sent'), { requeued: 0 })
  t.match(await requeue('--type', 'email.delivered', '--dry-run'), { requeued: 2, dry_run: true })
  t.match(await requeue('--webhook', other.endpoint.id), { requeued: 0 })
  t.match(await requeue('--webhook', endpoint.id), { requeued: 2, paused: EMPTY })
  t.match(await cli.fault(['webhook', 'requeue', team.id]), /a filter: --status, --since, --webhook, --type/)
  await service.database.query(sql.unsafe`
    update webhook_messages set status = 'failed' where endpoint_id = ${endpoint.id}`)
  t.match(await requeue('--webhook', endpoint.id), { requeued: 0 })
  t.match(await requeue('--status', 'failed', '--force'), { requeued: 2 })
  await startWorker(t, service)
  await until('both came', () => receiver.received.length === 2 && other.receiver.received.length === 1)
  // They are sent immediately and arrive in any order.
  const [newest, ...older] = await cli.json(['webhook', 'messages', team.id, endpoint.id, '--limit', '1'])
  t.match(newest, { type: 'email.delivered' })
  t.strictSame(older, [])
  t.ok(receiver.received.some(({ id }) => id === newest.event_id))
})

t.test("doesn't requeue failed messages of a disabled webhook", async (t) => {
  const { team, endpoint } = await begin(t)
  const [email_id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
  const [message] = await cli.json(['webhook', 'messages', team.id, endpoint.id, '--status', 'failed'])
  const requeue = ['webhook', 'requeue', team.id, '--force']
  t.equal(await cli.fault([...requeue, '--webhook', endpoint.id]), TEXTS.webhookDisabled)
  t.equal(await cli.fault([...requeue, message.id]), TEXTS.webhookDisabled)
  t.match(await cli.json([...requeue, '--status', 'failed']), { requeued: 0 })
  await cli.json(['webhook', 'enable', team.id, endpoint.id])
  t.match(await cli.json([...requeue, message.id, '--dry-run']), { id: message.id })
  t.match(await cli.json([...requeue, '--webhook', endpoint.id]), { requeued: 1 })
})

t.test('a filter only requeues messages of enabled webhooks', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  const open = await cli.json(['webhook', 'add', team.id, '--url', receiver.url])
  const [email_id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
  for (const { id } of [endpoint, open]) await cli.json(['webhook', 'disable', team.id, id])
  await cli.json(['webhook', 'enable', team.id, open.id])
  const failed = async ({ id }: { id: string }) =>
    (await cli.json(['webhook', 'messages', team.id, id, '--status', 'failed'])).length
  t.strictSame([await failed(endpoint), await failed(open)], [1, 1])
  const requeue = ['webhook', 'requeue', team.id, '--force', '--status', 'failed', '--since', '2026-01-01']
  t.match(await cli.json([...requeue, '--dry-run']), { requeued: 1 })
  t.match(await cli.json(requeue), { requeued: 1 })
  t.strictSame([await failed(endpoint), await failed(open)], [1, 0])
  t.match(await cli.json(['job', 'list', '--team', team.id]), [{ done: 1, total: 1 }])
  await startWorker(t, service)
  await until('it came', () => receiver.received.length > 0)
  t.equal(receiver.received.length, 1)
  t.equal(await failed(endpoint), 1)
})

t.test('replays thousands in slices, each once, with progress', async (t) => {
  const { team, receiver, endpoint, show } = await begin(t)
  const many = 1_500
  await service.database.query(sql.unsafe`
    insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
    select ${team.id}, id, ${endpoint.id}, gen_random_uuid(), 'webhook.test',
      '{"type":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z","data":{"endpoint_id":"' || ${endpoint.id}
        || '","detail":"a test"}}', 'failed', now() - interval '1 hour'
    from unnest(${idsNow(many)}) id`)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = `/teams/${team.id}/webhooks/${endpoint.id}`
  let list = await owner.get(`${at}/messages?status=failed`)
  for (const rel of ['next', 'next', 'prev']) {
    const [, href = ''] = new RegExp(`href="/dashboard([^"]+)" rel="${rel}"`).exec(list.html) ?? []
    list = await owner.get(href.replaceAll('&amp;', '&').replaceAll('&#x3D;', '='))
    t.equal(list.status, 200, `${rel}: ${href}`)
    t.match(list.html, 'rel="prev"')
  }
  const asked = await owner.ask(`${at}/replay`, { what: 'failed' })
  shows(t, asked, /Send 1,500 webhook events to .* again\? Status: failed\./)
  const [answer = {}] = formsTo(asked, `${at}/replay`)
  const { location } = await owner.post(`${at}/replay`, answer)
  t.match(location, `/teams/${team.id}/background-jobs/`, 'more than one slice: it goes on without the page')
  shows(t, await owner.get(location ?? ''), 'Queued again 1,000')
  t.match((await owner.post(`${at}/replay`, { what: 'everything' })).status, 400)
  await startWorker(t, service)
  await until('all came', () => receiver.received.length >= many, 120)
  await until('it says so', async () =>
    /1,500 webhook events queued to be sent again/.test(textOf((await owner.get(location ?? '')).html)),
  )
  t.equal(new Set(receiver.received.map(({ id }) => id)).size, many)
  await until('all are recorded', async () => (await show()).backlog === 0)
  t.equal(receiver.received.length, many)
  const [entry] = (await cli.json(['audit', 'list', '--team', team.id])).filter(
    ({ action }: { action: string }) => action === 'webhook.replay',
  )
  t.match(entry, { actor: owner.email, subject: endpoint.id, detail: '1,500 messages' })
  t.same(await cli.json(['webhook', 'replay', team.id, endpoint.id, '--failed']), { replayed: 0 })
})

t.test('a replay ends when its webhook is disabled', async (t) => {
  const { team, endpoint } = await begin(t)
  await service.database.query(sql.unsafe`
    insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
    select ${team.id}, id, ${endpoint.id}, gen_random_uuid(), 'email.sent', '{}', 'failed', now()
    from unnest(${idsNow(1_500)}) id`)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const path = `/teams/${team.id}/webhooks/${endpoint.id}/replay`
  const [answer = {}] = formsTo(await owner.ask(path, { what: 'over' }), path)
  const { location } = await owner.post(path, answer)
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  await startWorker(t, service)
  const shown = async () => textOf((await owner.get(location ?? '')).html)
  await until('it ends', async () => (await shown()).includes(TEXTS.webhookDisabled))
  t.match(await shown(), ' failed ')
})

t.test('endpoints receive the same ID and bytes, with limited details', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  const types = ['email.bounced', 'webhook.test']
  const other = await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', types.join()])
  t.match(other, { types })
  const [email_id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  const event = { team_id: team.id, email_id, detail: '😀'.repeat(1_500) }
  await happen(service, { ...event, kind: 'sent' }, { ...event, kind: 'bounced' })
  await startWorker(t, service)
  await until('all came', () => receiver.received.length === 3)
  const bounced = receiver.received.filter(({ body }) => body.type === 'email.bounced')
  t.equal(bounced.length, 2)
  t.equal(new Set(bounced.map(({ id, raw }) => id + raw)).size, 1)
  t.equal(bounced[0]?.body.data.detail, '😀'.repeat(1_000))
  t.equal((await cli.json(['webhook', 'messages', team.id, endpoint.id])).length, 2)
  t.equal((await cli.json(['webhook', 'messages', team.id, other.id])).length, 1)
})

t.test('a rolled-back change publishes no event', async (t) => {
  const { team, endpoint } = await begin(t)
  const [email_id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  const event = anEvent({ team_id: team.id, email_id, kind: 'delivered' })
  await service.database
    .transaction(async (tx) => {
      await applyEmailEvents(tx, [event], new Date())
      throw new Error('it never happened')
    })
    .catch(() => {})
  t.strictSame(await cli.json(['webhook', 'messages', team.id, endpoint.id]), [])
})

const jobRow = object({
  data: mixed<object>().defined(),
  group_id: string().defined(),
  dead_letter: string().defined(),
  retry_limit: number().defined(),
  heartbeat_seconds: number().defined(),
  expire_seconds: number().defined(),
})

t.test('the job of a new webhook equals one that the queue stores', async (t) => {
  const { team, endpoint } = await begin(t)
  const [email_id = ''] = await storeEmails(rows, team.id, [['a@example.org']])
  await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
  const job = await rows.database.one(sql.type(jobRow)`
    select j.data, j.group_id, j.dead_letter, j.retry_limit, j.heartbeat_seconds, j.expire_seconds
    from webhook_messages m join pgboss.job j on j.name = 'deliver-webhook' and j.id = m.id
    where m.team_id = ${team.id}`)
  const { payload, options, group } = JOBS['deliver-webhook']
  const data = await payload.noUnknown().validate(job.data, { strict: true })
  t.match(data, { team_id: team.id, endpoint_id: endpoint.id })
  t.equal(job.group_id, group(data))
  t.equal(job.dead_letter, deadLetterQueue('deliver-webhook'))
  const { retryLimit, heartbeatSeconds, expireInSeconds } = options
  const own = [job.retry_limit, job.heartbeat_seconds, job.expire_seconds]
  t.strictSame(own, [retryLimit, heartbeatSeconds, expireInSeconds])
})

t.test('keeps delivered messages for 3 days, failed ones for 30', async (t) => {
  const { team, endpoint } = await begin(t)
  const [a = '', b = ''] = await storeEmails(rows, team.id, [['a@example.org'], ['b@example.org']])
  for (const [email_id, status] of [
    [a, 'delivered'],
    [b, 'failed'],
  ] as const) {
    await happen(service, { team_id: team.id, email_id, kind: 'delivered' })
    await service.database.query(sql.unsafe`
      update webhook_messages set status = ${status} where subject_id = ${email_id}`)
  }
  const left = async (days: number) => {
    await purgeMessages(service.database, KEPT, new Date(Date.now() + days * 86_400_000))
    const messages = await cli.json(['webhook', 'messages', team.id, endpoint.id])
    return messages.map(({ status }: { status: string }) => status)
  }
  t.strictSame(await left(2), ['failed', 'delivered'])
  t.strictSame(await left(4), ['failed'])
  t.strictSame(await left(29), ['failed'])
  t.strictSame(await left(31), [])
})

t.test('shows that a webhook waits for a paused queue', async (t) => {
  const { team, endpoint } = await begin(t)
  const { event_id } = await cli.json(['webhook', 'test', team.id, endpoint.id])
  await cli.json(['queue', 'pause', 'deliver-webhook'])
  const message = ['webhook', 'message', team.id, endpoint.id, event_id]
  t.match(await cli.json(message), { waiting: { state: 'not_taken_yet', queue_paused: true } })
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const page = await viewer.get(`/teams/${team.id}/webhooks/${endpoint.id}/events/${event_id}`)
  shows(t, page, 'Its queue is paused by an operator')
  t.notMatch(page.html, 'Waiting for a worker', 'one reason, the most specific')
  t.notMatch(page.html, 'Send again', 'a viewer only reads')
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const own = `/teams/${team.id}/webhooks/${endpoint.id}/events/${event_id}`
  const paused = 'Queued to be sent again. Delivery is paused. The next attempt is made when it resumes.'
  await owner.post(`${own}/requeue`)
  shows(t, await owner.get(own), paused)
  await cli.json(['queue', 'resume', 'deliver-webhook'])
  for (const [id, said] of [
    [crypto.randomUUID(), 'Queued to be sent again.'],
    [endpoint.id, paused],
  ]) {
    const sender = { key: `webhook:${id}`, ceiling: 10 }
    await service.database.transaction((tx) => pauseSender(tx, sender, 600, 'Too many'))
    await owner.post(`${own}/requeue`)
    shows(t, await owner.get(own), said)
  }
  t.match(await cli.json(message), { waiting: { queue_paused: false } })
})
