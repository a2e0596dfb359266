/** A PgBouncer between all processes and the database, in session and transaction mode. */
import { type PoolMode, pgbouncerMissing, startPgbouncer } from '../../support/pgbouncer.ts'
import { inFlight, settle } from '../account.ts'
import { type Fault, inTurn, meanwhile } from '../fault.ts'
import { send } from '../load.ts'

const behind = (mode: PoolMode): Fault => ({
  id: `F/pool-${mode}`,
  words: `PgBouncer in ${mode} mode: connections cut and a worker killed every 3 s`,
  load: '600 singles',
  missing: pgbouncerMissing,
  world: { before: (url, closing) => startPgbouncer(closing, url, mode) },
  async run(world, scale) {
    const team = await world.team()
    const work = send(world, [team], 600 * scale)
    const { result: load, strikes } = await meanwhile(work, 3_000, (nth) => {
      world.toDatabase.cut()
      inTurn(world.workers, nth).signal('SIGKILL')
    })
    const account = await settle(world, load)
    return { ...account, allowed: inFlight(strikes), limit: 60 }
  },
})

export const poolerFaults: readonly Fault[] = [behind('session'), behind('transaction')]
