/** The token bucket behind every rate. */
import { array, assert, double, integer, nat, property, tuple } from 'fast-check'
import { refill, untilToken } from '../../../db/process/bucket.ts'
import t from '../../support/tap.ts'

const at = (ms: number): Date => new Date(1_700_000_000_000 + ms)
const tokens = double({ min: 0, max: 50, noNaN: true })
const rate = double({ min: 0.01, max: 1_000, noNaN: true })
const ms = integer({ min: 0, max: 100_000 })

t.test('a bucket refills continuously, up to its capacity', (t) => {
  const flow = { rate: 10, capacity: 50 }
  t.strictSame(refill({ tokens: 0, refilled_at: at(0) }, flow, at(250)), {
    tokens: 2.5,
    refilled_at: at(250),
  })
  t.equal(refill({ tokens: 3, refilled_at: at(0) }, flow, at(60_000)).tokens, 50)
  t.equal(refill({ tokens: 0, refilled_at: at(0) }, { rate: 1, capacity: 0.5 }, at(9_000)).tokens, 0.5)
  t.end()
})

t.test('a clock that moves back changes nothing', (t) => {
  const flow = { rate: 10, capacity: 50 }
  t.equal(refill({ tokens: 4, refilled_at: at(0) }, flow, at(-60_000)).tokens, 4)
  t.end()
})

t.test('two refills equal one', (t) => {
  assert(
    property(tokens, rate, ms, ms, (tokens, rate, first, second) => {
      const flow = { rate, capacity: 50 }
      const bucket = { tokens, refilled_at: at(0) }
      const once = refill(bucket, flow, at(first + second)).tokens
      const twice = refill(refill(bucket, flow, at(first)), flow, at(first + second)).tokens
      return Math.abs(once - twice) < 1e-6
    }),
  )
  t.end()
})

t.test('the time until a token is exactly when there is one', (t) => {
  t.equal(untilToken(0.5, 2), 0.25)
  t.equal(untilToken(1, 2), 0)
  t.equal(untilToken(7, 2), 0)
  assert(
    property(tokens, rate, (tokens, rate) => {
      const seconds = untilToken(tokens, rate)
      const then = refill(
        { tokens, refilled_at: at(0) },
        { rate, capacity: 50 },
        at(Math.ceil(seconds * 1_000)),
      )
      return then.tokens >= 1 - 1e-6
    }),
  )
  t.end()
})

t.test('no period grants more than capacity and rate allow', (t) => {
  const asks = array(tuple(nat(20_000), nat(20)), { maxLength: 30 })
  assert(
    property(integer({ min: 1, max: 10 }), integer({ min: 1, max: 50 }), asks, (rate, capacity, asks) => {
      let bucket = { tokens: capacity, refilled_at: at(0) }
      let [now, granted] = [0, 0]
      const looks: { now: number; granted: number }[] = []
      return asks.every(([wait, asked]) => {
        now += wait
        bucket = refill(bucket, { rate, capacity }, at(now))
        looks.push({ now, granted })
        const given = Math.min(asked, Math.floor(bucket.tokens))
        granted += given
        bucket.tokens -= given
        return looks.every(
          (look) => granted - look.granted <= capacity + ((now - look.now) / 1_000) * rate + 1e-6,
        )
      })
    }),
  )
  t.end()
})
