/**
 * Broadcasts whose workers and database are killed. Every matching contact gets one email or is listed with
 * the reason.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { inFlight } from '../account.ts'
import { type Broadcast, endOf, insistOn, REACHABLE, startBroadcast, tally } from '../broadcast.ts'
import { type Fault, inTurn, meanwhile } from '../fault.ts'
import { slowCommits } from '../slow-commits.ts'
import { type World, within } from '../world.ts'
import { crash } from './database.ts'

const PAUSES = 10

/** Pauses and resumes a broadcast up to PAUSES times. @returns how often. */
async function pauseAndResume(world: World, broadcast: Broadcast): Promise<number> {
  let done = 0
  while (done < PAUSES && (await insistOn(world, broadcast, 'pause', 200))) {
    await sleep(500)
    if (await insistOn(world, broadcast, 'resume', 200)) done += 1
    await sleep(1_500)
  }
  return done
}

/** True once this part of the broadcast has been sent. */
const hasLeft = (world: World, broadcast: Broadcast, part: number) => async (): Promise<boolean> =>
  ((await tally(world, broadcast))?.left ?? 0) >= broadcast.fitting * part

export const broadcastFaults: readonly Fault[] = [
  {
    id: 'G/broadcast',
    words:
      'a broadcast, paused and resumed ten times: kill -9 of a worker every 3 s, and a crash of the database',
    load: '20,000 contacts',
    own_server: true,
    world: { apis: [REACHABLE, REACHABLE] },
    async run(world, scale) {
      const broadcast = await startBroadcast(world, 20_000 * scale)
      let pauses = 0
      let crashes = 0
      const work = (async () => {
        pauses = await pauseAndResume(world, broadcast)
        await within(900, hasLeft(world, broadcast, 0.9))
      })()
      const { strikes } = await meanwhile(work, 3_000, async (nth) => {
        inTurn(world.workers, nth).signal('SIGKILL')
        if (crashes > 0 || !(await hasLeft(world, broadcast, 0.3)())) return
        crashes += 1
        await crash(world).catch(() => {})
      })
      const account = await endOf(world, broadcast, { ended: performance.now(), seconds: 300 })
      const missed = pauses === PAUSES && crashes === 1 ? 0 : 1
      return {
        ...account,
        over: account.over + missed,
        note: `${account.note}; ${strikes} kills, ${crashes} crash, ${pauses} pauses`,
        allowed: inFlight(strikes),
        limit: 300,
      }
    },
  },
  {
    id: 'G/expand',
    words: 'kill -9 of every worker while a broadcast’s emails are created',
    load: '5,000 contacts',
    world: { apis: [REACHABLE, REACHABLE] },
    async run(world, scale) {
      // Slow commits make each step long enough to be interrupted.
      const recover = await slowCommits(world, 0.002)
      const broadcast = await startBroadcast(world, 5_000 * scale)
      const isInTheMiddle = async (): Promise<boolean> => {
        const made = (await tally(world, broadcast))?.made ?? 0
        return made > 0 && made < broadcast.fitting * 0.9
      }
      const isCaught = await within(60, isInTheMiddle)
      for (const worker of world.workers) worker.signal('SIGKILL')
      await recover()
      const account = await endOf(world, broadcast, { ended: performance.now(), seconds: 120 })
      return {
        ...account,
        over: account.over + (isCaught ? 0 : 1),
        allowed: inFlight(world.workers.length),
        limit: 60,
      }
    },
  },
]
