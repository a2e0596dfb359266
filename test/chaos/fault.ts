/** Defines a fault: how it is caused, the load in the meantime, and its allowed cost. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './account.ts'
import type { World, WorldOptions } from './world.ts'

/** The result, and what the guarantees allow. */
export type Outcome = Account & {
  /** How many copies may follow one that was answered; 0 unless something was killed. */
  allowed?: number
  /** Within how many seconds all must be well again. */
  limit?: number
}

export type Fault = {
  /** As in the plan of faults: A1 … F. */
  id: string
  words: string
  load: string
  /** Only if no one else uses the database server. */
  own_server?: boolean
  /** It mostly waits, so a whole run starts it next to others, on another database server. */
  patient?: boolean
  /** The world that it needs; otherwise the usual one. */
  world?: WorldOptions
  /** Why it cannot be made on this machine; null when it can. */
  missing?: () => Promise<string | null>
  run(world: World, scale: number): Promise<Outcome>
}

/** Whether a fault that lasts for these seconds mostly waits. */
export const isPatient = (seconds: number): boolean => seconds >= 100

/** True if the guarantees were kept. */
export const holds = ({ lost, over, after_answer, recovered, allowed = 0, limit = 120 }: Outcome): boolean =>
  lost === 0 && over === 0 && after_answer <= allowed && recovered !== null && recovered <= limit

/**
 * Repeats something while work is running. If it returns `false`, it did nothing and is repeated at the next
 * turn.
 * @returns the work's result, and how often it was done.
 */
export async function meanwhile<T>(
  work: Promise<T>,
  every: number,
  strike: (nth: number) => unknown,
): Promise<{ result: T; strikes: number }> {
  let strikes = 0
  let over = false
  const done = work.finally(() => {
    over = true
  })
  // No one awaits it if a strike fails.
  done.catch(() => {})
  for (;;) {
    await Promise.race([done, sleep(every)])
    if (over) break
    if ((await strike(strikes)) !== false) strikes++
  }
  return { result: await done, strikes }
}

/** One of a list, each in its turn. */
export const inTurn = <T>(list: readonly T[], nth: number): T => {
  const chosen = list[nth % list.length]
  if (chosen === undefined) throw new Error('there is nothing to choose from')
  return chosen
}
