// No message of WhatsApp is lost when workers are killed, in small; the full-size run is test/bench/killed-whatsapp.ts.

import { deliverThroughKills } from '../../support/killed-whatsapp.ts'
import t from '../../support/tap.ts'

t.test('kill -9 of workers in mid-delivery loses nothing and repeats only what was in flight', async (t) => {
  await deliverThroughKills(t, { rows: 600, kills: 3, every: 0, pause: 300, seconds: 150 })
})
