/** Reserving sends ahead of time in the bucket that all workers share. First the pure rules, then the row. */
import fc from 'fast-check'
import { type Pace, paceAt, reserve } from '../../../../db/delivery/senders/rate-limit.ts'
import { listSenders } from '../../../../db/delivery/senders/show.ts'
import { stopClock } from '../../../support/clock.ts'
import { testDatabase } from '../../../support/database.ts'
import { EMPTY } from '../../../support/empty.ts'
import { openPool } from '../../../support/pool.ts'
import { sendersOf } from '../../../support/rows.ts'
import { pauseSender, reserveOne, slowSender } from '../../../support/senders.ts'
import t from '../../../support/tap.ts'

const START = new Date('2026-03-01T12:00:00Z')
const after = (seconds: number): Date => new Date(START.getTime() + seconds * 1_000)

const AT_EASE = { troubles: 0, troubled_at: null, accepted_at: null, deferrals: null }
const pace = (changes: Partial<Pace> = {}): Pace => ({
  rate: 10,
  slowed_at: null,
  tokens: 1,
  refilled_at: START,
  paused_until: null,
  pause_reason: null,
  ...AT_EASE,
  ...changes,
})

t.test('sends the first at once, others 0.1 s apart', async (t) => {
  const { reservation } = reserve(pace(), [1, 1, 1, 1], 5, START)
  const delays = reservation.delays.map((delay) => Math.round(delay * 1_000))
  t.strictSame(delays, [0, 100, 200, 300])
  t.equal(reservation.wait_seconds, 0)
})

t.test('a send that exceeds the bucket delays those after it', async (t) => {
  const { reservation } = reserve(pace(), [30, 1], 5, START)
  t.strictSame(reservation.delays, [0, 3])
})

t.test("sends beyond the horizon aren't reserved", async (t) => {
  const { pace: left, reservation } = reserve(pace(), Array(100).fill(1), 2, START)
  t.equal(reservation.delays.length, 21)
  t.match(reservation, { wait_seconds: 3, reason: 'the send rate is reached' })
  t.equal(left.tokens, -20)
})

t.test('a paused sender reserves nothing and returns the reason', async (t) => {
  const paused = pace({ paused_until: after(90), pause_reason: 'account paused' })
  const reserved = reserve(paused, [1], 5, START).reservation
  t.match(reserved, { delays: EMPTY, wait_seconds: 90, reason: 'account paused' })
  const { pace: over, reservation } = reserve(paused, [1], 5, after(90))
  t.strictSame(reservation.delays, [0])
  t.match(over, { paused_until: null, pause_reason: null })
})

t.test('no second exceeds the ceiling', async () => {
  const asks = fc.array(
    fc.record({
      pause: fc.integer({ min: 0, max: 3_000 }),
      costs: fc.array(fc.constant(1), { maxLength: 30 }),
    }),
    { maxLength: 40 },
  )
  const rates = fc.integer({ min: 2, max: 200 })
  fc.assert(
    fc.property(rates, asks, (rate, batches) => {
      const ceiling = rate * 0.9
      const paused = { paused_until: null, pause_reason: null, ...AT_EASE }
      const stored = { key: 'x', rate: ceiling, slowed_at: null, ...paused }
      let row = { ...stored, tokens: 1, refilled_at: START.toISOString() }
      let now = 0
      const sent: number[] = []
      for (const { pause, costs } of batches) {
        now += pause / 1_000
        const at = new Date(Math.ceil(START.getTime() + now * 1_000))
        const { pace: left, reservation } = reserve(paceAt(row, ceiling, at, 0.1), costs, 5, at)
        sent.push(...reservation.delays.map((delay) => (at.getTime() - START.getTime()) / 1_000 + delay))
        row = { ...stored, tokens: left.tokens, refilled_at: left.refilled_at.toISOString() }
      }
      sent.sort((one, other) => one - other)
      return sent.every((first, index) => {
        const within = sent.slice(index).filter((each) => each < first + 1).length
        // One more may fall on either edge of the interval.
        return within <= rate + 1
      })
    }),
  )
})

t.test('a halving counts once for sends released before it', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 4 })
  const sender = { key: 'ses:test', ceiling: 80, saved_seconds: 0.1 }
  const rate = async (): Promise<number | undefined> => (await sendersOf({ database }))[0]?.rate
  const at = (seconds: number) => stopClock(database, after(seconds))
  await at(0)
  await reserveOne(database, sender, [1], 5)
  await at(2)
  await slowSender(database, sender, after(1), 'too fast')
  t.equal(await rate(), 40)
  await at(5)
  await slowSender(database, sender, after(1), 'too fast')
  t.equal(await rate(), 40, 'reserved before the halving')
  await at(6)
  await slowSender(database, sender, after(3), 'too fast')
  t.equal(await rate(), 20, 'reserved after it, and still too fast')
  const { delays } = await reserveOne(database, sender, [1, 1], 5)
  t.equal(delays[1], 0.1, 'at the slower pace from now on')
  t.match(await listSenders(database), [{ events: [{ kind: 'slowed', detail: 'too fast' }] }], 'stored once')
})

t.test('an on-demand sender has no row until it is slowed', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 4 })
  const sender = { key: 'smtp:test', ceiling: 200, on_demand: true }
  const costs = Array(5_000).fill(1)
  const reserved = async (seconds: number): Promise<number> => {
    await stopClock(database, after(seconds))
    const { delays } = await reserveOne(database, sender, costs, 5)
    return delays.filter((delay) => delay === 0).length
  }
  t.equal(await reserved(0), 5_000)
  t.strictSame(await sendersOf({ database }), [])
  await slowSender(database, sender, START, 'too fast')
  t.ok((await reserved(1)) < 200)
  t.equal(await reserved(600), 5_000)
  await pauseSender(database, sender, 290, 'logged out')
  await pauseSender(database, sender, 300, 'logged out')
  const [shown] = await listSenders(database)
  t.match(shown?.events, [{ kind: 'paused', detail: 'logged out' }, { kind: 'slowed' }], 'each stored once')
  await stopClock(database, after(601))
  const later = await reserveOne(database, sender, [1], 5)
  t.match(later, { delays: EMPTY, wait_seconds: 299, reason: 'logged out' })
  t.equal(await reserved(900), 5_000)
})

t.test('a fixed rate applies from the first send', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 4 })
  await stopClock(database, START)
  const { delays } = await reserveOne(database, { key: 'ses:test', ceiling: 10 }, Array(12).fill(1), 5)
  t.equal(delays.filter((delay) => delay === 0).length, 10)
  const later = delays.slice(10).map((delay) => Math.round(delay * 1_000))
  t.strictSame(later, [100, 200])
})
