// Delivery of WhatsApp messages. Real workers, a stand-in Cloud API.

import t, { type Test } from 'tap'
import { eventsOfMessage } from '../../../db/messages/whatsapp/events.sql.ts'
import { messageById } from '../../../db/messages/whatsapp/messages.sql.ts'
import { showMessage } from '../../../db/messages/whatsapp/show.ts'
import { queueStatus } from '../../../db/queue/jobs.sql.ts'
import {
  type CloudAnswer,
  type CloudMessage,
  cloudError,
  statusOf,
  statusWebhook,
} from '../../sandbox/whatsapp.ts'
import { PHONE_NUMBER_ID, startCloud } from '../../support/cloud.ts'
import { ageByADay, sendersOf } from '../../support/rows.ts'
import { makeTeam, startService, WHATSAPP_APP_SECRET } from '../../support/service.ts'
import {
  aMessage,
  aTemplate,
  endPauses,
  type Json,
  jobOf,
  loseJobs,
  makeTemplate,
  numbers,
  setDue,
  setFailed,
  setStatus,
  setTaken,
  templateOf,
} from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

type Script = (message: CloudMessage) => CloudAnswer | undefined | Promise<CloudAnswer | undefined>
type Options = { onMessage?: Script; provider?: Json; definition?: Json }

const service = await startService(t)
let begun = 0

/** How many messages a worker sends at once. */
const CONCURRENCY = 20
/** More than a worker that has just started may ask before it knows. */
const PROBED = CONCURRENCY

/** A team with a template, a stand-in that answers as scripted and reports to our hook, and a worker. */
async function begin(t: Test, { onMessage, provider = {}, definition }: Options = {}) {
  await loseJobs(service)
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id, definition)
  const cloud = await startCloud(
    t,
    {
      script: onMessage ? { onMessage } : {},
      webhook: { url: `${service.base}/hooks/whatsapp`, app_secret: WHATSAPP_APP_SECRET },
    },
    { phone_number_id: `number-${++begun}`, ...provider },
  )
  const send = async (changes: Json = {}): Promise<string[]> => {
    const body = aMessage(template.id, changes)
    const reply = await service.call('POST', '/v1/whatsapp/messages', { key: team.key, body })
    if (reply.status !== 201) throw new Error(JSON.stringify(reply.body))
    return reply.body.data.map(({ id }: { id: string }) => id)
  }
  const one = async (changes: Json = {}): Promise<string> => (await send(changes))[0] ?? ''
  const row = async (id: string) => {
    const found = await messageById(service.database, team.id, id)
    if (!found) throw new Error('the row is gone')
    return found
  }
  const kinds = async (id: string) =>
    (await eventsOfMessage(service.database, team.id, id)).map(({ kind }) => kind)
  const sender = async () =>
    (await sendersOf(service)).find(({ key }) => key === cloud.delivery.provider.sender.key)
  /** Whether its job waits after that number of tries. */
  const waits = async (id: string, tries: number): Promise<boolean> =>
    (await kinds(id)).length === tries && (await jobOf(service, id))?.state === 'retry'
  const work = async () => await startWorker(t, service, { whatsapp: cloud.delivery })
  return { team, template, cloud, send, one, row, kinds, waits, sender, work }
}

const answering = (code: number, status = 400) => ({ status, body: cloudError(code, 'Words', 'Details') })

t.test(
  'an accepted message reaches the provider; its answer stores the id and leaves the status queued',
  async (t) => {
    const { cloud, one, row, kinds, work, team } = await begin(t, {
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
    const id = await one({ parameters, to: ['+33 6 12 34 56 78'] })
    await until('it is taken', async () => (await row(id)).provider_message_id !== null)
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
  },
)

t.test('the provider’s reports move it: queued → sent → delivered → read', async (t) => {
  const { cloud, one, row, kinds, work } = await begin(t)
  await work()
  const id = await one()
  await until('it is taken', () => cloud.messages().length === 1)
  const [message] = cloud.messages()
  if (!message) throw new Error('no message')
  for (const status of ['sent', 'delivered', 'read'] as const) {
    await cloud.post(statusWebhook(PHONE_NUMBER_ID, [statusOf(message, { status })]))
    await until(`it is ${status}`, async () => (await row(id)).status === status)
  }
  await until('all is reported', async () => (await kinds(id)).length === 4)
  t.same(new Set(await kinds(id)), new Set(['accepted', 'sent', 'delivered', 'read']))
})

t.test('refused for good: failed, with code and words in the events, and never tried again', async (t) => {
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

t.test(
  'a fault of the template fails the message and is kept with the template, which stays sendable',
  async (t) => {
    const { one, row, work, template } = await begin(t, { onMessage: () => answering(132000) })
    await work()
    const id = await one()
    await until('it failed', async () => (await row(id)).status === 'failed')
    t.match(await templateOf(service, template.id), { status: 'approved', fault: /^132000/ })
  },
)

t.test('a template that the provider says is paused or disabled stops being sendable here', async (t) => {
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
    await until('it failed', async () => (await row(id)).status === 'failed')
    t.equal((await templateOf(service, template.id)).status, status)
    const body = aMessage(template.id)
    const reply = await service.call('POST', '/v1/whatsapp/messages', { key: team.key, body })
    t.match(reply, { status: 400, body: { error: { code: 'template_disabled' } } })
  }
})

t.test('a passing fault is tried again with growing pauses, then sent once', async (t) => {
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

t.test('too many to one recipient slows that pair only: at least 6 s, growing', async (t) => {
  const { cloud, send, row, waits, work, sender, team } = await begin(t, {
    onMessage: ({ body }) => (body.to === '+15555550106' ? answering(131056) : undefined),
  })
  await work()
  const [slow = '', other = ''] = await send({ to: ['+15555550106', '+15555550101'] })
  await until('the other is taken', async () => (await row(other)).accepted_at !== null)
  const seconds: number[] = []
  for (const attempt of [1, 2, 3]) {
    await until('it waits', () => waits(slow, attempt))
    seconds.push((await jobOf(service, slow))?.wait ?? 0)
    if (attempt === 3) break
    t.match(await showMessage({ tx: service.database, now: new Date() }, team.id, slow), {
      waiting: { paused_senders: [], paused_for_recipient: [{ reason: /131056/ }] },
    })
    await endPauses(service)
    await setDue(service, [slow])
  }
  const asked = cloud.messages().length
  const [next = ''] = await send({ to: ['+15555550106'] })
  await until(
    'another to the same recipient rests too',
    async () => ((await jobOf(service, next))?.wait ?? 0) > 15,
  )
  t.equal(cloud.messages().length, asked)
  const [first = 0, second = 0, third = 0] = seconds
  t.ok(first > 5 && second > 11 && third > 23, `${seconds.join(', ')} s`)
  t.equal((await sender())?.paused_until, null)
  t.equal(cloud.messages().filter(({ body }) => body.to === '+15555550101').length, 1)
})

t.test('130429 slows the number: halved, and the message waits without counting an attempt', async (t) => {
  const { one, row, kinds, work, sender } = await begin(t, {
    onMessage: ({ tries }) => (tries < 1 ? answering(130429, 429) : undefined),
  })
  await work()
  const id = await one()
  await until('the number is slowed', async () => (await sender())?.rate === 500)
  t.match(await jobOf(service, id), { state: 'created' })
  t.same(await kinds(id), [], 'the pace of the number is no try of the message')
  t.equal((await sender())?.paused_until, null)
  await setDue(service, [id])
  await until('it is taken', async () => (await row(id)).accepted_at !== null)
})

t.test(
  'an account fault pauses the number: nothing more is asked, no message is burned, all go out later',
  async (t) => {
    let broken = true
    const { cloud, send, row, work, kinds, sender } = await begin(t, {
      onMessage: () => (broken ? answering(190, 401) : undefined),
    })
    const sends = [0, 50, 100].map((from) => send({ to: numbers(50, from) }))
    const ids = (await Promise.all(sends)).flat()
    await work()
    await until('the number is paused', async () => Boolean((await sender())?.paused_until))
    t.match((await sender())?.pause_reason, /^190/)
    await until('it was probed', async () => cloud.messages().length > PROBED)
    const { length } = cloud.messages()
    t.ok(length <= CONCURRENCY + 5, `${length} of ${ids.length} were asked: then one at a time`)
    for (const id of ids) t.match(await row(id), { status: 'queued', accepted_at: null })
    t.same((await Promise.all(ids.map(kinds))).flat(), [], 'the number’s own timeline has it')
    broken = false
    await until('all are taken', async () =>
      (await Promise.all(ids.map(row))).every((one) => one.accepted_at),
    )
    t.match(await sender(), { paused_until: null })
  },
)

t.test('131048 pauses the number for an hour', async (t) => {
  const { one, work, sender } = await begin(t, { onMessage: () => answering(131048) })
  await work()
  await one()
  await until('the number is paused', async () => Boolean((await sender())?.paused_until))
  const minutes = (new Date((await sender())?.paused_until ?? 0).getTime() - Date.now()) / 60_000
  t.ok(minutes > 58 && minutes <= 60, `${minutes} minutes`)
})

t.test(
  'after an unknown outcome a report comes before any second try: then it is never sent again',
  async (t) => {
    const { cloud, one, row, kinds, work } = await begin(t, {
      onMessage: () => 'reset',
      provider: { unknown_wait: 600 },
    })
    await work()
    const id = await one()
    await until('it waits', async () => ((await jobOf(service, id))?.wait ?? 0) > 500)
    t.same(await kinds(id), ['unknown'])
    t.match(await row(id), { status: 'queued', accepted_at: null, provider_message_id: null })
    const [message] = cloud.messages()
    if (!message) throw new Error('no message')
    await cloud.post(statusWebhook(PHONE_NUMBER_ID, [statusOf(message, { status: 'sent' })]))
    await until('the report found it', async () => (await row(id)).status === 'sent')
    t.equal((await row(id)).provider_message_id, message.id)
    await setDue(service, [id])
    await until('its job is done', async () => (await jobOf(service, id)) === null)
    t.equal(cloud.messages().length, 1)
  },
)

t.test('after an unknown outcome without a report it is tried again once the wait is over', async (t) => {
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

t.test('a 2xx that cannot be read counts as taken: never a second message', async (t) => {
  const { cloud, one, row, work } = await begin(t, { onMessage: () => 'cut' })
  await work()
  const id = await one()
  await until('it is taken', async () => (await row(id)).accepted_at !== null)
  t.match(await row(id), { status: 'queued', provider_message_id: null })
  t.equal(await jobOf(service, id), null)
  t.equal(cloud.messages().length, 1)
})

t.test('what is taken, or has its fate, is not sent again, whatever job names it', async (t) => {
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
  t.same(
    cloud.messages().map(({ body }) => body.to),
    [numbers(3)[2]],
  )
})

t.test('a message whose report came first is not sent at all', async (t) => {
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

t.test(
  'after 24 h of tries a message that is still put off is dead-lettered: the row stays queued',
  async (t) => {
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
    t.match(
      queues.find(({ queue }) => queue === 'deliver-whatsapp'),
      { dead: 1 },
    )
  },
)

t.test('a number’s pace is kept', async (t) => {
  const { cloud, send, work } = await begin(t, { provider: { messages_per_second: 20 } })
  await send({ to: numbers(50) })
  await work()
  await until('all arrived', () => cloud.messages().length === 50)
  const times = cloud.messages().map(({ received_at }) => new Date(received_at).getTime())
  const seconds = (Math.max(...times) - Math.min(...times)) / 1_000
  // A second's worth may be saved up.
  t.ok(seconds >= 1.3, `${seconds} s for 50 at 20 per second`)
})
