// Results of WhatsApp messages: accepted, rejected, unknown, reported. With real workers and a simulated
// Cloud API.

import { sql } from 'slonik'
import { setBulkPaused } from '../../../db/accounts/teams/reputation.sql.ts'
import { eventsOfMessage } from '../../../db/messages/whatsapp/events.sql.ts'
import { showMessage } from '../../../db/messages/whatsapp/show.ts'
import { queueStatus } from '../../../db/queue/jobs.sql.ts'
import { statusWebhook } from '../../sandbox/whatsapp.ts'
import { PHONE_NUMBER_ID } from '../../support/cloud.ts'
import { ageByADay } from '../../support/rows.ts'
import t from '../../support/tap.ts'
import {
  aMessage,
  aTemplate,
  jobOf,
  numbers,
  setDue,
  setFailed,
  setStatus,
  setTaken,
  templateOf,
} from '../../support/whatsapp.ts'
import { answering, startDeliveries } from '../../support/whatsapp-delivery.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, begin } = await startDeliveries(t)

t.test('an accepted message stores the provider’s id and stays queued', async (t) => {
  const { cloud, oneTaken, row, kinds, work, team } = await begin(t, {
    definition: aTemplate({
      header: { format: 'TEXT', text: 'Order {{1}}' },
      body: 2,
      buttons: [
        { type: 'QUICK_REPLY', text: 'Stop' },
        { type: 'URL', text: 'Open', url: 'https://example.com/{{1}}' },
      ],
    }),
  })
  await work()
  const parameters = { 'url:1': 'orders/17', 'body:2': 'tomorrow', 'header:1': 'A-17', 'body:1': 'Ana' }
  const id = await oneTaken({ parameters, to: ['+33 6 12 34 56 78'] })
  const [request] = cloud.messages()
  const text = (value: string) => ({ type: 'text', text: value })
  t.match(request?.body, { to: '+33612345678', biz_opaque_callback_data: `${team.id}:${id}` })
  t.strictSame(request?.body.template?.components, [
    { type: 'header', parameters: [text('A-17')] },
    { type: 'body', parameters: [text('Ana'), text('tomorrow')] },
    { type: 'button', sub_type: 'url', index: '1', parameters: [text('orders/17')] },
  ])
  t.match(await row(id), { status: 'queued', provider_message_id: request?.id })
  t.strictSame(await kinds(id), ['accepted'])
  await until('its job is done', async () => (await jobOf(service, id)) === null)
  t.equal(cloud.messages().length, 1)
})

t.test("messages are sent while their team's bulk email is paused", async (t) => {
  const { cloud, send, work, team } = await begin(t)
  await work()
  const pause = { reason: 'team_bounces', sent: 600, count: 72, limit: 10 } as const
  await service.database.transaction((tx) => setBulkPaused(tx, team.id, pause))
  await send({ to: ['+33612345678', '+33612345679'] })
  await until('both are taken', () => cloud.messages().length === 2)
})

t.test('reports move a queued message to sent, delivered and read', async (t) => {
  const { oneTaken, report, row, kinds, work } = await begin(t)
  await work()
  const id = await oneTaken()
  for (const status of ['sent', 'delivered', 'read'] as const) {
    await report({ status })
    await until(`it is ${status}`, async () => (await row(id)).status === status)
  }
  await until('all is reported', async () => (await kinds(id)).length === 4)
  t.same(new Set(await kinds(id)), new Set(['accepted', 'sent', 'delivered', 'read']))
})

t.test('a permanent rejection fails the message without a retry', async (t) => {
  const { cloud, one, row, work, team } = await begin(t, { onMessage: () => answering(131026) })
  await work()
  const id = await one()
  await until('it failed', async () => (await row(id)).status === 'failed')
  const [event, ...others] = await eventsOfMessage(service.database, team.id, id)
  t.match(event, { kind: 'failed', detail: '131026 (#131026) Words: Details' })
  t.same(others, [])
  t.equal(await jobOf(service, id), null)
  t.equal(cloud.messages().length, 1)
})

t.test('a template error only fails the message', async (t) => {
  const { one, row, work, template } = await begin(t, { onMessage: () => answering(132000) })
  await work()
  const id = await one()
  await until('it failed', async () => (await row(id)).status === 'failed')
  t.match(await templateOf(service, template.id), { status: 'approved', fault: /^132000/ })
})

t.test('a template paused or disabled by the provider becomes unsendable', async (t) => {
  let code = 132015
  const { one, row, work, team, template } = await begin(t, { onMessage: () => answering(code) })
  await work()
  for (const [answer, status] of [
    [132015, 'paused'],
    [132016, 'disabled'],
  ] as const) {
    code = answer
    await setStatus(service, team.id, template.id, 'approved')
    const id = await one()
    await until('it is noted', async () => (await templateOf(service, template.id)).status === status)
    t.equal((await row(id)).status, status === 'paused' ? 'queued' : 'failed')
    const body = aMessage(template.id)
    const reply = await service.call('POST', '/v1/whatsapp/messages', { key: team.key, body })
    t.match(reply, { status: 400, body: { error: { code: 'template_disabled' } } })
  }
})

t.test('retries temporary errors with growing delays, sends once', async (t) => {
  const { cloud, one, row, kinds, waits, work } = await begin(t, {
    onMessage: ({ tries }) => (tries < 2 ? answering(131000, 500) : undefined),
  })
  await work()
  const id = await one()
  for (const attempt of [1, 2]) {
    await until('it waits', () => waits(id, attempt))
    const { wait = 0 } = (await jobOf(service, id)) ?? {}
    t.ok(wait > 2 ** (attempt - 1) && wait <= 30, `attempt ${attempt}: ${wait} s`)
    t.match(await row(id), { status: 'queued', accepted_at: null })
    await setDue(service, [id])
  }
  await until('it is taken', async () => (await row(id)).accepted_at !== null)
  t.same(await kinds(id), ['deferred', 'deferred', 'accepted'])
  t.equal(cloud.messages().length, 3)
})

t.test('a report of an unknown outcome prevents a second send', async (t) => {
  const { cloud, one, report, row, kinds, work } = await begin(t, {
    onMessage: () => 'reset',
    provider: { unknown_wait: 600 },
  })
  await work()
  const id = await one()
  await until('it waits', async () => ((await jobOf(service, id))?.wait ?? 0) > 500)
  t.same(await kinds(id), ['unknown'])
  t.match(await row(id), { status: 'queued', accepted_at: null, provider_message_id: null })
  await report({ status: 'sent' })
  await until('the report found it', async () => (await row(id)).status === 'sent')
  t.equal((await row(id)).provider_message_id, cloud.messages()[0]?.id)
  await setDue(service, [id])
  await until('its job is done', async () => (await jobOf(service, id)) === null)
  t.equal(cloud.messages().length, 1)
})

t.test('retries unknown outcomes without a report after the wait', async (t) => {
  const { cloud, one, row, kinds, work } = await begin(t, {
    onMessage: ({ tries }) => (tries === 0 ? 'hang' : undefined),
    provider: { timeout_ms: 3_000, unknown_wait: 2 },
  })
  await work()
  const id = await one()
  await until('it is taken', async () => (await row(id)).accepted_at !== null)
  t.same(await kinds(id), ['unknown', 'accepted'])
  const [first, second] = cloud.messages()
  const apart = new Date(second?.received_at ?? 0).getTime() - new Date(first?.received_at ?? 0).getTime()
  t.ok(apart >= 2_000, `${apart} ms apart`)
})

t.test('an unreadable 2xx counts as accepted without a second message', async (t) => {
  const { cloud, one, row, work } = await begin(t, { onMessage: () => 'cut' })
  await work()
  const id = await one()
  await until('it is taken', async () => (await row(id)).accepted_at !== null)
  t.match(await row(id), { status: 'queued', provider_message_id: null })
  t.equal(await jobOf(service, id), null)
  t.equal(cloud.messages().length, 1)
})

t.test('never resends accepted or final messages', async (t) => {
  const { cloud, send, work } = await begin(t)
  const [taken = '', failed = '', waiting = ''] = await send({ to: numbers(3) })
  await setTaken(service, taken)
  await setFailed(service, failed)
  await work()
  await until('all jobs are done', async () =>
    (await Promise.all([taken, failed, waiting].map((id) => jobOf(service, id)))).every(
      (job) => job === null,
    ),
  )
  const numbersSent = cloud.messages().map(({ body }) => body.to)
  t.same(numbersSent, [numbers(3)[2]])
})

t.test("a message with an early report isn't sent", async (t) => {
  const { cloud, one, row, work, team } = await begin(t)
  const id = await one()
  await startWorker(t, service)
  const early = {
    id: 'wamid.early',
    status: 'delivered',
    timestamp: '1750000000',
    biz_opaque_callback_data: `${team.id}:${id}`,
  }
  await cloud.post(statusWebhook(PHONE_NUMBER_ID, [early]))
  await until('the report found it', async () => (await row(id)).status === 'delivered')
  await work()
  await until('its job is done', async () => (await jobOf(service, id)) === null)
  t.equal(cloud.messages().length, 0)
})

t.test('a message deferred for 24 h is dead-lettered', async (t) => {
  const { one, row, kinds, waits, work } = await begin(t, { onMessage: () => answering(131000, 500) })
  const id = await one()
  await work()
  await until('it is put off', () => waits(id, 1))
  await ageByADay(service, id)
  await setDue(service, [id])
  await until('it is given up', async () => (await jobOf(service, id))?.state === 'failed')
  t.equal((await row(id)).status, 'queued')
  t.same(new Set(await kinds(id)), new Set(['deferred', 'gave_up']))
  const queues = await queueStatus(service.database)
  const messages = queues.find(({ queue }) => queue === 'deliver-whatsapp')
  t.match(messages, { dead: 1 })
})

t.test('retries a temporary failure reported after sent', async (t) => {
  const { cloud, oneTaken, report, row, work, team } = await begin(t)
  await work()
  const id = await oneTaken()
  await report({ status: 'sent' })
  await report({ status: 'failed', errors: [{ code: 131000, title: 'Something went wrong' }] })
  const shown = () => showMessage({ tx: service.database, now: service.deps.clock() }, team.id, id)
  await until('it waits', async () => (await shown()).waiting !== undefined)
  t.match(await shown(), {
    status: 'sent',
    waiting: { state: 'deferred', attempts: 1, last_response: /131000/, next_attempt_at: /Z$/ },
  })
  await until('it is sent again', () => cloud.messages().length === 2)
  await report({ status: 'delivered' })
  await until('it is delivered', async () => (await row(id)).status === 'delivered')
  t.equal((await shown()).waiting, undefined)
})

t.test('a message expired after a late failure shows sent', async (t) => {
  const { cloud, oneTaken, report, row, work, kinds, team } = await begin(t)
  await work()
  const id = await oneTaken({ expires_in: 60 })
  await report({ status: 'sent' })
  await until('it is sent', async () => (await row(id)).status === 'sent')
  await service.database.query(sql.unsafe`
    update whatsapp_messages set expires_at = now() - interval '1 second' where id = ${id}`)
  await report({ status: 'failed', errors: [{ code: 131016, title: 'Service unavailable' }] })
  await until('it has expired', async () => (await kinds(id)).includes('gave_up'))
  const shown = await showMessage({ tx: service.database, now: service.deps.clock() }, team.id, id)
  t.match(shown, { status: 'sent', waiting: { state: 'failed' } })
  t.match(shown.events.at(-1), { kind: 'gave_up', detail: /^expired: / })
  t.equal(cloud.messages().length, 1)
})
