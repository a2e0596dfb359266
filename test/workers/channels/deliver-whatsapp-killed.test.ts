// WhatsApp messages survive killed workers, on a small scale. The full-size run is
// test/bench/killed-whatsapp.ts.

import { deliverThroughKills } from '../../support/killed-whatsapp.ts'
import t from '../../support/tap.ts'

t.test('kill -9 loses nothing and only repeats sends in flight', async (t) => {
  await deliverThroughKills(t, { rows: 600, kills: 3, every: 0, pause: 300, seconds: 150 })
})
