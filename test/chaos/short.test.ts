/** The short form of `npm run test:chaos`: a few of its faults, with small loads. */
import { testDatabase } from '../support/database.ts'
import t from '../support/tap.ts'
import { REACHABLE } from './broadcast.ts'
import { holds } from './fault.ts'
import { FAULTS } from './faults/all.ts'
import { NEIGHBOURLY } from './faults/webhooks.ts'
import { runAlone, runIn } from './run.ts'
import { openWorld } from './world.ts'

/**
 * Faults that share a database server and end within seconds, with their share of the load. Repeatedly killed
 * workers (A1) are in test/workers/channels/deliver-email.test.ts.
 */
const SHORT: readonly [id: string, scale: number][] = [
  ['A3', 0.1],
  ['B1', 0.1],
  ['B2', 1],
  ['C/reset', 0.1],
  ['C/lost', 0.25],
  ['G/expand', 0.1],
  ['H/files', 0.1],
  ['I/webhooks', 0.05],
]

/** Faults that need their own database server, with their share of the load. */
const OWN_SERVER: readonly [id: string, scale: number][] = [['A12/failover', 0.05]]

/** The time limit for recovery in seconds. A complete run on an idle machine has a lower one. */
const BUSY = 120

const { url } = await testDatabase(t)
const world = await openWorld(url, { apis: [REACHABLE, REACHABLE], env: NEIGHBOURLY })
t.teardown(() => world.close())

for (const [id, scale] of SHORT) {
  const fault = FAULTS.find((each) => each.id === id)
  t.test(`${fault?.words} loses or repeats nothing and exceeds no limit`, async (t) => {
    if (!fault) throw new Error(`there is no fault ${id}`)
    const { outcome } = await runIn(world, fault, scale)
    t.ok(holds({ ...outcome, limit: BUSY }), JSON.stringify(outcome))
  })
}

for (const [id, scale] of OWN_SERVER) {
  const fault = FAULTS.find((each) => each.id === id)
  t.test(`${fault?.words} loses, pauses or repeats nothing`, async (t) => {
    if (!fault) throw new Error(`there is no fault ${id}`)
    // Its idle processes would use a third of the CPU time.
    await world.close()
    const { outcome } = await runAlone(url, fault, { scale, stop: new AbortController().signal })
    t.ok(holds({ ...outcome, limit: BUSY }), JSON.stringify(outcome))
  })
}
