/** Defines a fault: how it is caused, the load in the meantime, and its allowed cost. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './account.ts'
import type { World, WorldOptions } from './world.ts'

/** The result, with the limits that the guarantees set. */
export type Outcome = Account & {
  /** How many copies may follow an accepted one. 0 unless something was killed. */
  allowed?: number
  /** The time limit for recovery, in seconds. */
  limit?: number
}

export type Fault = {
  /** The letter of its group with a number or a name, such as A1 or F/uploads. */
  id: string
  words: string
  load: string
  /** True if nothing else may use the database server. */
  own_server?: boolean
  /** True if it mostly waits. A complete run starts it next to others, on another database server. */
  patient?: boolean
  /** The world that it needs, otherwise the default one. */
  world?: WorldOptions
  /** Returns why this machine can't cause the fault. Null if it can. */
  missing?: () => Promise<string | null>
  run(world: World, scale: number): Promise<Outcome>
}

/** True if a fault of this duration mostly waits. */
export const isPatient = (seconds: number): boolean => seconds >= 100

/** True if the guarantees were kept. */
export const holds = ({ lost, over, after_answer, recovered, allowed = 0, limit = 120 }: Outcome): boolean =>
  lost === 0 && over === 0 && after_answer <= allowed && recovered !== null && recovered <= limit

/**
 * Calls `strike` repeatedly while work is running. A call that returns `false` did nothing and isn't counted.
 * @returns the work's result, and the number of strikes.
 */
export async function meanwhile<T>(work: Promise<T>, every: number, strike: (nth: number) => unknown) {
  let strikes = 0
  let over = false
  const done = work.finally(() => {
    over = true
  })
  // If a strike fails, this promise is never awaited.
  done.catch(() => {})
  for (;;) {
    await Promise.race([done, sleep(every)])
    if (over) break
    if ((await strike(strikes)) !== false) strikes++
  }
  return { result: await done, strikes }
}

/** Returns the items of a list in turn. */
export const inTurn = <T>(list: readonly T[], nth: number): T => {
  const chosen = list[nth % list.length]
  if (chosen === undefined) throw new Error('there is nothing to choose from')
  return chosen
}
