/**
 * Messages of teams with their own WhatsApp numbers: each is sent from its number, and no number delays
 * another.
 */
import { sql } from 'slonik'
import { number as numeric } from 'yup'
import { listSenders } from '../../../db/delivery/senders/show.ts'
import { countRow, row } from '../../../db/postgres/rows.ts'
import type { CloudMessage } from '../../sandbox/whatsapp.ts'
import { runClock, stopClock } from '../../support/clock.ts'
import { ACCESS_TOKEN, BUSINESS_ACCOUNT_ID } from '../../support/cloud.ts'
import { numberOf, startNumbers } from '../../support/number-senders.ts'
import t from '../../support/tap.ts'
import { aMessage, type Json, numbers } from '../../support/whatsapp.ts'
import { answering } from '../../support/whatsapp-delivery.ts'
import { giveNumber } from '../../support/whatsapp-numbers.ts'
import { giveUpAll, until } from '../../support/worker.ts'

const { service, database, cli, sender, begin } = await startNumbers(t)

/** Returns how many jobs a message has in the queue of numbers, and in others. */
const jobsOf = async (id: string) =>
  await database.one(sql.type(row({ own: numeric(), other: numeric() }))`
    select count(*) filter (where name = 'deliver-whatsapp-number') as own,
      count(*) filter (where name <> 'deliver-whatsapp-number') as other
    from pgboss.job where id = ${id} and state < 'completed'`)

t.test('sends from the team’s number with its token', async (t) => {
  const { cloud, work } = await begin(t)
  const [one, other, plain] = [await sender(), await sender(), await sender({ own: false })]
  await Promise.all([
    one.send({ to: numbers(5) }),
    other.send({ to: numbers(5) }),
    plain.send({ to: numbers(5) }),
  ])
  await work()
  await until('all have left', () => cloud.messages().length === 15)
  const teamOf = ({ body }: CloudMessage) => String(body.biz_opaque_callback_data).split(':')[0]
  for (const message of cloud.messages()) {
    const owner = [one, other].find(({ team }) => team.id === teamOf(message))
    t.equal(numberOf(message), owner?.phone_number_id ?? '100000000000002')
    t.equal(message.authorization, `Bearer ${owner ? `token-${owner.name}` : ACCESS_TOKEN}`)
  }
})

t.test('a message keeps the number of its acceptance', async (t) => {
  const { work, from } = await begin(t)
  const { team, send, phone_number_id } = await sender()
  await send({ to: numbers(2) })
  await giveNumber(service, team.id, null)
  await send({ to: numbers(1) })
  await work()
  await until('the first ones have left', () => from(phone_number_id).length === 2)
  await until('the last one has left', () => from('100000000000002').length === 1)
})

t.test('requeued, scheduled, swept and redriven messages keep their number', async (t) => {
  const { work, from } = await begin(t)
  const { team, send, phone_number_id } = await sender()
  const [requeued = '', redriven = '', lost = ''] = await send({ to: numbers(3) })
  const scheduled_at = new Date(Date.now() + 3_600_000).toISOString()
  const [timed = ''] = await send({ to: numbers(1), scheduled_at })
  await giveNumber(service, team.id, null)
  await cli.json(['whatsapp', 'requeue', team.id, requeued])
  t.same(await jobsOf(requeued), { own: 1, other: 0 })
  await database.query(sql.unsafe`
    delete from pgboss.job where id = any(${sql.array([requeued, lost], 'uuid')})`)
  await giveUpAll(service, 'deliver-whatsapp-number')
  t.match(await cli.json(['queue', 'redrive', 'deliver-whatsapp-number']), { redriven: 1 })
  t.same(await jobsOf(redriven), { own: 1, other: 0 })
  for (const id of [requeued, lost]) await cli.json(['whatsapp', 'requeue', team.id, id])
  await cli.json(['whatsapp', 'requeue', team.id, timed, '--force'])
  t.same(await jobsOf(timed), { own: 1, other: 0 })
  await work()
  await until('all have left', () => from(phone_number_id).length === 4)
})

t.test('a number that hangs or is rejected delays no other', async (t) => {
  const [slow, wrong, sound] = [await sender(), await sender(), await sender()]
  const { work, from } = await begin(
    t,
    (message) => {
      if (numberOf(message) === slow.phone_number_id) return 'hang'
      return numberOf(message) === wrong.phone_number_id ? answering(190, 401) : undefined
    },
    4,
  )
  await Promise.all([slow.send({ to: numbers(50) }), wrong.send({ to: numbers(50) })])
  const worker = await work()
  await until('the slow one has been asked', () => from(slow.phone_number_id).length > 0)
  await sound.send({ to: numbers(40) })
  const started = performance.now()
  await until('all of the sound one have left', () => from(sound.phone_number_id).length === 40)
  t.ok(performance.now() - started < 20_000, 'within the time that the slow one hangs')
  t.ok(from(wrong.phone_number_id).length <= 4, 'it is probed only')
  // Only the clock changes the state now.
  await worker.stop()
  const states = async () =>
    new Map(
      (await listSenders(database)).map(({ key, state, paused_until }) => [key, { state, paused_until }]),
    )
  const keyOf = ({ phone_number_id }: typeof wrong): string => `whatsapp:${phone_number_id}`
  await stopClock(database, new Date(0))
  const end = Date.parse((await states()).get(keyOf(wrong))?.paused_until ?? '')
  for (const [ms, state] of [
    [-1, 'paused'],
    [1, 'probing'],
  ] as const) {
    await stopClock(database, new Date(end + ms))
    const now = await states()
    t.equal(now.get(keyOf(wrong))?.state, state, `${ms} ms after the end of its pause`)
    t.equal(now.get(keyOf(sound))?.state, 'sending')
  }
  await runClock(database)
})

t.test('sends nothing from removed numbers or with undecryptable tokens', async (t) => {
  const { cloud, work } = await begin(t)
  const [removed, sealed, other] = [await sender(), await sender(), await sender()]
  const [gone = ''] = await removed.send()
  const [kept = ''] = await sealed.send()
  await giveNumber(service, removed.team.id, null)
  await database.query(sql.unsafe`delete from whatsapp_numbers where name = ${removed.name}`)
  await database.query(sql.unsafe`
    update whatsapp_numbers set access_token = (
      select access_token from whatsapp_numbers where name = ${other.name})
    where name = ${sealed.name}`)
  await work()
  const shown = async (team: string, id: string) =>
    (await cli.json(['whatsapp', 'show', team, id])) as { waiting?: Json; events: { detail: string }[] }
  await until('it has failed', async () => (await shown(removed.team.id, gone)).waiting?.state === 'failed')
  t.match(await shown(removed.team.id, gone), { waiting: { last_response: /number .* removed/ } })
  // The pause may end while a busy machine asks for it again.
  let seen: Json = {}
  await until('its number is paused', async () => {
    seen = await shown(sealed.team.id, kept)
    return String((seen.waiting as Json | undefined)?.paused_senders).includes('object')
  })
  t.match(seen, {
    waiting: { paused_senders: [{ sender: `whatsapp:${sealed.phone_number_id}`, reason: /token/ }] },
  })
  t.equal(cloud.messages().length, 0)
})

t.test('a paused number’s messages wait, others are sent', async (t) => {
  const { work, from } = await begin(t)
  const [paused, other] = [await sender(), await sender()]
  await database.query(sql.unsafe`update whatsapp_numbers set paused_at = now() where name = ${paused.name}`)
  const [id = ''] = await paused.send({ to: numbers(5) })
  await work()
  await other.send({ to: numbers(5) })
  await until('the others have left', () => from(other.phone_number_id).length === 5)
  t.equal(from(paused.phone_number_id).length, 0)
  t.equal(
    await database.oneFirst(sql.type(countRow)`
      select count(*) from pgboss.job where data ->> 'team_id' = ${paused.team.id} and start_after <= now()`),
    5,
    'no worker claims its jobs',
  )
  t.match(await cli.json(['whatsapp', 'show', paused.team.id, id]), {
    waiting: { paused_senders: [{ sender: `whatsapp:${paused.phone_number_id}`, until: null }] },
  })
  await database.query(sql.unsafe`update whatsapp_numbers set paused_at = null where name = ${paused.name}`)
  await until('all have left', () => from(paused.phone_number_id).length === 5)
})

t.test('each number has its own rate', async (t) => {
  const { work, from, cloud } = await begin(t)
  const [slow, fast] = [await sender({ messages_per_second: 20 }), await sender()]
  await Promise.all([slow.send({ to: numbers(50) }), fast.send({ to: numbers(50) })])
  await work()
  await until('all have left', () => cloud.messages().length === 100)
  const secondsOf = ({ phone_number_id }: typeof slow): number => {
    const times = from(phone_number_id).map(({ received_at }) => Date.parse(received_at))
    return (Math.max(...times) - Math.min(...times)) / 1_000
  }
  // A second's worth may be saved up.
  t.ok(secondsOf(slow) >= 1.3, `${secondsOf(slow)} s for 50 at 20 per second`)
  const last = (id: string) => Math.max(...from(id).map(({ received_at }) => Date.parse(received_at)))
  t.ok(last(fast.phone_number_id) < last(slow.phone_number_id), 'the other does not wait for it')
})

t.test('messages of teams that share a number alternate', async (t) => {
  const order: string[] = []
  const flooding = await sender()
  const { work } = await begin(t, ({ body }) => {
    order.push(String(body.biz_opaque_callback_data).split(':')[0] ?? '')
    return undefined
  })
  const other = await sender({ own: false })
  await giveNumber(service, other.team.id, flooding.name)
  for (let from = 0; from < 300; from += 50) await flooding.send({ to: numbers(50, from) })
  await other.send({ to: numbers(10, 500) })
  await work()
  await until('all have left', () => order.length === 310)
  t.ok(order.lastIndexOf(other.team.id) < 100, `the last at ${order.lastIndexOf(other.team.id)}`)
})

t.test('a template of another account is not sent', async (t) => {
  await begin(t)
  const { team, template } = await sender({ account_id: 'waba-3' })
  await database.query(sql.unsafe`
    update whatsapp_templates set account_id = 'waba-2' where id = ${template.id}`)
  const send = () =>
    service.call('POST', '/v1/whatsapp/messages', { key: team.key, body: aMessage(template.id) })
  t.match(await send(), { status: 400, body: { error: { code: 'template_disabled', message: /waba-3/ } } })
  await database.query(sql.unsafe`update whatsapp_templates set account_id = null where id = ${template.id}`)
  t.match(await send(), { body: { error: { code: 'template_disabled' } } }, 'the default account’s neither')
  await database.query(sql.unsafe`
    update whatsapp_templates set account_id = 'waba-3' where id = ${template.id}`)
  t.equal((await send()).status, 201)
})

t.test("default-account numbers send that account's templates", async (t) => {
  await begin(t)
  const { team, template } = await sender({ account_id: BUSINESS_ACCOUNT_ID })
  await database.query(sql.unsafe`update whatsapp_templates set account_id = null where id = ${template.id}`)
  const body = aMessage(template.id)
  t.equal((await service.call('POST', '/v1/whatsapp/messages', { key: team.key, body })).status, 201)
})
