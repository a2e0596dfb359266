// Limits and pauses of WhatsApp messages: recipients, numbers, accounts. With real workers and a simulated
// Cloud API.

import { showMessage } from '../../../db/messages/whatsapp/show.ts'
import { EMPTY } from '../../support/empty.ts'
import t from '../../support/tap.ts'
import { endPauses, jobOf, numbers, setDue } from '../../support/whatsapp.ts'
import { answering, startDeliveries } from '../../support/whatsapp-delivery.ts'
import { until } from '../../support/worker.ts'

const { service, begin } = await startDeliveries(t)

/** How many messages a worker sends at once. */
const CONCURRENCY = 20
/** More than a worker that has just started may send before it knows. */
const PROBED = CONCURRENCY

t.test('too many messages to one recipient only delay that pair', async (t) => {
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
      waiting: { paused_senders: EMPTY, paused_for_recipient: [{ reason: /131056/ }] },
    })
    await endPauses(service)
    await setDue(service, [slow])
  }
  const asked = cloud.messages().length
  const [next = ''] = await send({ to: ['+15555550106'] })
  await until('one more to that recipient rests', async () => ((await jobOf(service, next))?.wait ?? 0) > 15)
  t.equal(cloud.messages().length, asked)
  const [first = 0, second = 0, third = 0] = seconds
  t.ok(first > 5 && second > 11 && third > 23, `${seconds.join(', ')} s`)
  t.equal((await sender())?.paused_until, null)
  t.equal(cloud.messages().filter(({ body }) => body.to === '+15555550101').length, 1)
})

t.test("the recipient's limit covers both forms of a number", async (t) => {
  const { cloud, send, waits, work } = await begin(t, {
    onMessage: ({ body }) => (body.to === '+5511987654321' ? answering(131056) : undefined),
  })
  await work()
  const [slow = ''] = await send({ to: ['+5511987654321'] })
  await until('it waits', () => waits(slow, 1))
  const [other = ''] = await send({ to: ['+551187654321'] })
  await until('the other form waits', async () => ((await jobOf(service, other))?.wait ?? 0) > 2)
  t.equal(cloud.messages().length, 1)
})

t.test('130429 halves the number’s rate without counting an attempt', async (t) => {
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

t.test('an account error pauses the number and loses no message', async (t) => {
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
  await until('all are taken', async () => (await Promise.all(ids.map(row))).every((one) => one.accepted_at))
  t.match(await sender(), { paused_until: null })
})

t.test('131048 pauses the number for an hour', async (t) => {
  const { one, work, sender } = await begin(t, { onMessage: () => answering(131048) })
  await work()
  await one()
  await until('the number is paused', async () => Boolean((await sender())?.paused_until))
  const minutes = (new Date((await sender())?.paused_until ?? 0).getTime() - Date.now()) / 60_000
  t.ok(minutes > 58 && minutes <= 60, `${minutes} minutes`)
})

t.test('a number’s rate is respected', async (t) => {
  const { cloud, send, work } = await begin(t, { provider: { messages_per_second: 20 } })
  await send({ to: numbers(50) })
  await work()
  await until('all arrived', () => cloud.messages().length === 50)
  const times = cloud.messages().map(({ received_at }) => new Date(received_at).getTime())
  const seconds = (Math.max(...times) - Math.min(...times)) / 1_000
  // A second's worth may be saved up.
  t.ok(seconds >= 1.3, `${seconds} s for 50 at 20 per second`)
})
