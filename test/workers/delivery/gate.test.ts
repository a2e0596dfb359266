/** What is taken in hand of senders that have a bound of their own, by how they answer. */

import type { Sender } from '../../../db/delivery/senders/pace.ts'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { createBreakers } from '../../../workers/delivery/breaker.ts'
import type { DeliveryChannel } from '../../../workers/delivery/channel.ts'
import { createGate, type Message } from '../../../workers/delivery/gate.ts'
import { createServiceClock } from '../../../workers/delivery/service-clock.ts'
import { testDatabase } from '../../support/database.ts'
import t, { type Test } from '../../support/tap.ts'

type Some = Message<'deliver-webhook', never>

const ROOM = 96
const sender: Sender = { key: 'webhook:one', ceiling: 1_000, on_demand: true, at_once: 4 }

/** A gate, and a sender whose last message was taken within these seconds; null: none was sent. */
async function begin(t: Test, seconds: number | null) {
  const { url } = await testDatabase(t)
  const database = await openDatabase(url, { size: 2 })
  t.teardown(() => database.end())
  const breakers = createBreakers()
  const channel = { channel: { job: 'deliver-webhook' }, senders: { prefix: 'webhook:', in_hand: 256 } }
  const gate = createGate(
    channel as unknown as DeliveryChannel<'deliver-webhook', never>,
    { database },
    { breakers, clock: createServiceClock() },
  )
  if (seconds !== null) breakers.of(sender).note([{ kind: 'accepted', detail: '' }], new Date(), seconds)
  const messages = (count: number) =>
    Array.from({ length: count }, () => ({ job: {}, outgoing: { sender, cost: 1 } }) as Some)
  const pass = async (count: number) => {
    const { released, held } = await gate.pass(messages(count))
    return { released, held: held.flatMap((each) => each.messages).length }
  }
  return { gate, pass }
}

t.test('of a sender that answers well a whole lot is taken, and no more until half is sent', async (t) => {
  const { gate, pass } = await begin(t, 0.01)
  const { released, held } = await pass(ROOM)
  t.strictSame([released.length, held], [ROOM, 0], 'none is claimed for nothing')
  t.strictSame((await gate.admit(ROOM)).except, [sender.key])
  const news = released.map((each) => gate.done(each))
  t.equal(news.filter(Boolean).length, 1, 'there is more to claim, said once')
  t.equal(news.indexOf(true), ROOM - 32 - 1)
  t.strictSame((await gate.admit(ROOM)).except, [])
})

t.test(
  'of one that answers slowly little is taken, of one that is unknown or has failed even less',
  async (t) => {
    const slow = await (await begin(t, 1)).pass(ROOM)
    t.strictSame([slow.released.length, slow.held], [16, ROOM - 16])
    const unknown = await (await begin(t, null)).pass(ROOM)
    t.strictSame([unknown.released.length, unknown.held], [8, ROOM - 8])
    const late = await (await begin(t, 3)).pass(ROOM)
    t.strictSame([late.released.length, late.held], [2, ROOM - 2])
  },
)
