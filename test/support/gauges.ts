/** The gauges of an idle process. */
import { type Gauges, STORED_GAUGES } from '../../db/stats/fleet/fleet.sql.ts'

export const idleGauges = (): Gauges => ({
  ...(Object.fromEntries(STORED_GAUGES.map((name) => [name, 0])) as Record<
    (typeof STORED_GAUGES)[number],
    number
  >),
  version: '0.0.0',
  node: 'v24.0.0',
})
