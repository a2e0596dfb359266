/** How a process fares that does nothing. */
import { GAUGES, type Gauges } from '../../db/figures/fleet/fleet.sql.ts'

export const idleGauges = (): Gauges => ({
  ...(Object.fromEntries(GAUGES.map((name) => [name, 0])) as Record<(typeof GAUGES)[number], number>),
  version: '0.0.0',
  node: 'v24.0.0',
})
