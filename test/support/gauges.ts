/** The gauges of an idle process. */
import { VERSION } from '../../db/process/version.ts'
import { type Gauges, STORED_GAUGES } from '../../db/stats/fleet/fleet.sql.ts'

export const idleGauges = (): Gauges => ({
  ...(Object.fromEntries(STORED_GAUGES.map((name) => [name, 0])) as Record<
    (typeof STORED_GAUGES)[number],
    number
  >),
  version: VERSION,
  node: 'v24.0.0',
})
