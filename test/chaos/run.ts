/** Runs faults: several in one world, each set up in calm conditions, or one in a separate world. */
import type { Fault, Outcome } from './fault.ts'
import { holds } from './fault.ts'
import { openWorld, type World, within } from './world.ts'

export type Line = { fault: Fault; outcome: Outcome; held: boolean }

/** Restores the initial conditions: calm networks, a normal relay, every process up, nothing paused. */
async function calm({ toDatabase, toRelay, relay, apis, workers, sql }: World): Promise<void> {
  toDatabase.weather('calm')
  toRelay.weather('calm')
  relay.manners(() => undefined)
  for (const member of [...apis, ...workers]) member.signal('SIGCONT')
  await within(60, async () => (await sql('select 1')).length === 1)
  await sql('delete from senders')
  await within(60, async () => {
    const answers = await Promise.all(apis.map((api) => fetch(`${api.base()}/ready`)))
    return answers.every(({ ok }) => ok)
  })
}

/** Runs a fault in a world that other faults have used. */
export async function runIn(world: World, fault: Fault, scale: number): Promise<Line> {
  await calm(world)
  const outcome = await fault.run(world, scale)
  return { fault, outcome, held: holds(outcome) }
}

/** Builds the outcome of a fault that didn't finish. */
const unfinished = (error: unknown): Outcome => ({
  accepted: 0,
  lost: 0,
  repeated: 0,
  after_answer: 0,
  over: 0,
  recovered: null,
  note: `it did not come to an end: ${error instanceof Error ? error.message : error}`,
})

/**
 * Runs a fault in a separate world, with a migrated database. An exception counts as a broken guarantee.
 * @param stop ends it early.
 */
export async function runAlone(
  url: string,
  fault: Fault,
  { scale, stop }: { scale: number; stop: AbortSignal },
): Promise<Line> {
  const world = await openWorld(url, fault.world)
  const stopped = Promise.withResolvers<never>()
  stop.addEventListener('abort', () => stopped.reject(new Error('asked to stop')))
  try {
    return await Promise.race([runIn(world, fault, scale), stopped.promise])
  } catch (error) {
    return { fault, outcome: unfinished(error), held: false }
  } finally {
    await world.close()
  }
}
