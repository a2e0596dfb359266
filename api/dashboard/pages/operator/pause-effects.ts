/** Judges the pauses of senders by the messages that wait. The overview, Health and the page of a number agree. */
import { unusedNumbers } from '../../../../db/delivery/senders/senders.sql.ts'
import type { ShownSender } from '../../../../db/delivery/senders/show.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { isPaused } from '../stopped.ts'
import { countWaiting, NOTHING_WAITS } from './senders.ts'

/** The effect of a pause. Without waiting messages, it is only a warning. */
type PauseEffect = { tone: 'warn' | 'bad'; text: string; isUnused: boolean }

/** By the name of a number, otherwise by the key of the sender. */
export type PauseEffects = ReadonlyMap<string, PauseEffect>

/** Returns the effect of each pause. */
export async function pauseEffects(tx: Tx, senders: readonly ShownSender[]): Promise<PauseEffects> {
  const paused = senders.filter(isPaused)
  const waits = await countWaiting(tx, paused)
  const unused = await unusedNumbers(tx)
  const judge = ({ key, name }: ShownSender): PauseEffect => {
    const waiting = waits.get(key) ?? NOTHING_WAITS
    if (waiting !== NOTHING_WAITS) return { tone: 'bad', text: `Waiting: ${waiting}.`, isUnused: false }
    const isUnused = unused.includes(name ?? '')
    return { tone: 'warn', text: isUnused ? 'No team uses the number.' : 'No messages wait.', isUnused }
  }
  return new Map(paused.map((sender) => [sender.name ?? sender.key, judge(sender)]))
}

/** Counts paused senders, except unused ones without waiting messages. */
export const countStopping = (effects: PauseEffects): number =>
  [...effects.values()].filter(({ isUnused }) => !isUnused).length

/** Adds the effect of a pause to its reason. */
export const withEffect = (reason: string, effect: PauseEffect | undefined): string =>
  effect === undefined ? reason : `${reason.replace(/\.?$/, '.')} ${effect.text}`
