/**
 * 10,000 WhatsApp messages through two workers with a kill -9 every 3 seconds.
 * Run: npm test -- test/bench/killed-whatsapp.ts
 */
import t from 'tap'
import { deliverThroughKills } from '../support/killed-whatsapp.ts'

t.setTimeout(600_000)
t.test('10,000 rows, two workers, a kill every 3 s', async (t) => {
  const figures = await deliverThroughKills(t, {
    rows: 10_000,
    kills: 15,
    every: 3_000,
    pause: 20,
    seconds: 300,
  })
  process.stderr.write(`${figures}\n`)
})
