/**
 * A failover. The primary is killed while emails are accepted and sent and a broadcast expands, and its
 * synchronous standby becomes the primary. The queue must not be paused, because the processes find their own
 * heartbeats (DECISIONS: A restored copy).
 */
import { startPair } from '../../support/standby.ts'
import { inFlight, settle } from '../account.ts'
import { endOf, REACHABLE, scheduleAgain, startBroadcast, tally } from '../broadcast.ts'
import type { Fault } from '../fault.ts'
import { send } from '../load.ts'
import { startNetwork } from '../network.ts'
import { type OwnServer, through, type WorldOptions, within } from '../world.ts'

/** A primary and a standby behind one address, which moves to the standby at the failover. */
async function pairServer(closing: Parameters<NonNullable<WorldOptions['server']>>[0]): Promise<OwnServer> {
  const pair = await startPair(closing)
  await pair.synchronise()
  const address = await startNetwork(Number(new URL(pair.primary).port))
  closing.teardown(() => address.close())
  return {
    url: through(pair.primary, address.port),
    async failOver() {
      await pair.kill()
      await pair.promote()
      address.lead(Number(new URL(pair.standby).port))
      address.cut()
    },
  }
}

export const failoverFaults: readonly Fault[] = [
  {
    id: 'A12/failover',
    words: 'kill -9 of the primary, and promotion of its synchronous standby',
    load: '1,000 singles, and two broadcasts to 3,000 contacts, one of them scheduled',
    world: { apis: [REACHABLE, REACHABLE], server: pairServer },
    async run(world, scale) {
      const broadcast = await startBroadcast(world, 3_000 * scale)
      const later = await scheduleAgain(world, broadcast, 8)
      const work = send(world, [broadcast.team], 1_000 * scale)
      const isInTheMiddle = await within(60, async () => ((await tally(world, broadcast))?.left ?? 0) > 20)
      await world.failOver()
      const ended = performance.now()
      const singles = await settle(world, await work, { ended })
      const again = { ...broadcast, id: later }
      const hasFired = await within(300, async () => (await tally(world, again))?.state === 'sent')
      // This counts all of the team's emails, including single ones.
      const all = await endOf(world, broadcast, { ended, seconds: 300 })
      const [home] = await world.sql<{ paused: string; how: string }>(
        'select (select count(*) from paused_queues) as paused, how from database_home',
      )
      const asWanted = isInTheMiddle && hasFired && home?.paused === '0' && home.how === 'continued'
      return {
        ...all,
        accepted: singles.accepted + all.accepted,
        lost: singles.lost + all.lost,
        over: singles.over + all.over + (asWanted ? 0 : 1),
        recovered: singles.recovered === null ? null : all.recovered,
        note: `${all.note}; ${home?.paused} queues paused`,
        allowed: inFlight(world.workers.length),
        limit: 300,
      }
    },
  },
]
