/** Runs faults one after the other in one world, and sets up each in calm weather. */
import type { Fault, Outcome } from './fault.ts'
import { holds } from './fault.ts'
import { type World, within } from './world.ts'

export type Line = { fault: Fault; outcome: Outcome; held: boolean }

/** All is as at the start: calm networks, a polite relay, every process up, nothing paused. */
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

/** Runs them. @param tell hears of each as it ends. */
export async function runFaults(
  world: World,
  faults: readonly Fault[],
  { scale = 1, tell = () => {} }: { scale?: number; tell?: (line: Line) => void } = {},
): Promise<Line[]> {
  const lines: Line[] = []
  for (const fault of faults) {
    await calm(world)
    const outcome = await fault.run(world, scale)
    const line = { fault, outcome, held: holds(outcome) }
    lines.push(line)
    tell(line)
  }
  return lines
}
