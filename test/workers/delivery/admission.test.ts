/** The number of messages in flight per sender with its own limit, depending on its responses. */
import { sql } from 'slonik'
import type { Sender } from '../../../db/delivery/senders/rate-limit.ts'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { createServiceClock } from '../../../db/postgres/service-clock.ts'
import { createAdmission, type Message } from '../../../workers/delivery/admission.ts'
import { createBreakers } from '../../../workers/delivery/breaker.ts'
import type { DeliveryChannel } from '../../../workers/delivery/channel.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t, { type Test } from '../../support/tap.ts'

type Some = Message<'deliver-webhook', never>

const ROOM = 96
const sender: Sender = { key: 'webhook:one', ceiling: 1_000, on_demand: true, at_once: 4 }

/**
 * Creates an admission, and a sender whose last message was accepted in this many seconds. Null if none was
 * sent.
 */
async function begin(t: Test, seconds: number | null) {
  const { url } = await testDatabase(t)
  const database = await openDatabase(url, { size: 2 })
  t.teardown(() => database.end())
  const breakers = createBreakers()
  const channel = { channel: { job: 'deliver-webhook' }, senders: { prefix: 'webhook:' } }
  const admission = createAdmission(
    channel as unknown as DeliveryChannel<'deliver-webhook', never>,
    { database },
    { breakers, clock: createServiceClock() },
  )
  if (seconds !== null)
    breakers
      .of(sender)
      .note([{ kind: 'accepted', detail: '' }], { message: 'a', began_at: new Date(), seconds: seconds })
  const pass = async (count: number) => {
    const messages = Array.from({ length: count }, message)
    const { released, held } = await admission.release(messages, await admission.look())
    return { released: released.length, held: held.flatMap((each) => each.messages).length }
  }
  /** Returns how many of its messages may be claimed. Undefined if as many as any other sender's. */
  const room = async () => (await admission.admit(ROOM)).rooms?.of.get(sender.key)
  return { database, admission, pass, room }
}

const message = () => ({ job: {}, outgoing: { sender, cost: 1 } }) as Some

t.test('a responsive sender gets more after half is sent', async (t) => {
  const { admission, pass, room } = await begin(t, 0.01)
  t.equal(await room(), undefined, 'at first it may have what an unknown one may')
  t.strictSame(await pass(8), { released: 8, held: 0 })
  t.equal(await room(), 56)
  const { released, held } = await pass(60)
  t.strictSame([released, held], [56, 4])
  t.equal(await room(), 0)
  const news = Array.from({ length: 64 }, () => admission.done(message()))
  t.equal(news.filter(Boolean).length, 1, 'there is more to claim, said once')
  t.equal(news.indexOf(true), 31)
  t.equal(await room(), undefined)
})

t.test('only a sender at full capacity may have more', async (t) => {
  const { admission, pass, room } = await begin(t, null)
  await room()
  await pass(7)
  t.notOk(
    admission.done(message()) ||
      admission.done(message()) ||
      admission.done(message()) ||
      admission.done(message()),
  )
  t.equal(await room(), 5)
  await pass(5)
  t.notOk(admission.done(message()) || admission.done(message()) || admission.done(message()))
  t.ok(admission.done(message()), 'half of eight is done')
})

t.test('an unknown or slow sender gets little in flight', async (t) => {
  const slow = await begin(t, 1)
  t.strictSame(await slow.pass(ROOM), { released: 8, held: ROOM - 8 })
  const unknown = await begin(t, null)
  t.strictSame(await unknown.pass(ROOM), { released: 8, held: ROOM - 8 })
  const hangs = await begin(t, 3)
  t.strictSame(await hangs.pass(ROOM), { released: 1, held: ROOM - 1 })
  t.equal(await hangs.room(), 0)
  t.ok(hangs.admission.done(message()), 'then it may have the next')
  t.equal(await hangs.room(), 1, 'it is not unknown because nothing of it is in flight')
})

t.test('a paused sender has capacity 0, a probed one 1', async (t) => {
  const { database, pass, room } = await begin(t, 0.01)
  await pass(8)
  const { key } = sender
  const insert = (paused: string) =>
    database.query(sql.unsafe`
    insert into senders (key, rate, tokens, refilled_at, troubles, troubled_at, paused_until)
    values (${key}, 1000, 1, now(), 1, now(), now() + ${paused}::interval)
    on conflict (key) do update set paused_until = excluded.paused_until`)
  await insert('1 minute')
  t.equal(await room(), 0)
  await insert('-1 minute')
  t.equal(await room(), 1)
})

t.test('an old look does not hide a pause of the sender', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 2 })
  const only: Sender = { key: 'smtp:one', ceiling: 1_000, on_demand: true }
  const channel = { channel: { job: 'deliver-email' }, senders: { one: async () => only } }
  const admission = createAdmission(
    channel as unknown as DeliveryChannel<'deliver-email', never>,
    { database },
    { breakers: createBreakers(), clock: createServiceClock() },
  )
  const messages = () =>
    [{ job: {}, outgoing: { sender: only, cost: 1 } }] as Message<'deliver-email', never>[]
  const look = await admission.look()
  t.ok(look.is_home)
  t.equal((await admission.release(messages(), look)).released.length, 1)
  await database.query(sql.unsafe`
    insert into senders (key, rate, tokens, refilled_at, paused_until)
    values (${only.key}, 1000, 1, now(), now() + interval '1 minute')`)
  const old = { ...look, at: look.at - 1_000 }
  const { released, held } = await admission.release(messages(), old)
  t.strictSame([released.length, held.length], [0, 1])
})
