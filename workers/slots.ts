/**
 * How many provider calls may run at once in this process (WORKER_CONCURRENCY), whatever batch they belong to.
 * Promises: first come, first served; a call that gets no slot within its patience never starts, nor does one that
 * was let go before its sender was halted, nor any once they are closed. Holds no job.
 */

import { createTurns } from '../db/process/turns.ts'

export type Slots = {
  /** Runs `work` in a slot. @param patience milliseconds to wait for one. @returns null when none came free in time. */
  run<T>(work: () => Promise<T>, patience: number): Promise<T | null>
  /** What was let go through this sender before `now` and has not begun yet shall not: its pace has changed. */
  halt(sender: string, now: Date): void
  isHalted(sender: string, booked_at: Date): boolean
  /** From now on nothing begins any more: the process is about to end. */
  close(): void
}

/** Makes the slots of a process. */
export function createSlots(limit: number): Slots {
  const turns = createTurns(limit)
  const halts = new Map<string, Date>()
  return {
    run: (work, patience) => turns.run('send', work, patience),
    halt: (sender, now) => void halts.set(sender, now),
    isHalted: (sender, booked_at) => (halts.get(sender) ?? booked_at) > booked_at,
    close: turns.close,
  }
}
