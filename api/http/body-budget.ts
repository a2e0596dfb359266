/** How many bytes of request bodies a process keeps in memory. */
import { byMemory } from '../../db/process/memory.ts'
import { MAX_BODY_BYTES } from './read-body.ts'

const MIB = 1024 * 1024
/**
 * In bytes. `patience` is how long a body waits for capacity, in milliseconds, with its socket unread. Storing a body
 * needs several times its size. Unauthenticated bodies always leave enough for the largest body of a team, and those of
 * one path leave some for other paths.
 */
export const BODY_BUDGET = {
  perOwner: 12 * MIB,
  unauthenticated: 7 * MIB,
  perPath: 3.5 * MIB,
  total: 20 * MIB,
  patience: 25_000,
}
export type Budget = typeof BODY_BUDGET

/** Larger bodies can only use LARGE_BODIES_SHARE of each limit. The rest is for small ones. */
export const SMALL_BODY_BYTES = 64 * 1024
export const LARGE_BODIES_SHARE = 7 / 8

/** With little memory: enough for a team's body of 3.5 MiB, and for the largest post of a hook, 3 MiB. */
const SMALLEST = { perOwner: 4 * MIB, unauthenticated: 3.5 * MIB, total: 8 * MIB }

/** Returns the limits of a process. @param limit its memory limit in bytes */
export const budgetFor = (limit: number): Budget => ({
  ...BODY_BUDGET,
  perOwner: byMemory(limit, SMALLEST.perOwner, BODY_BUDGET.perOwner),
  unauthenticated: byMemory(limit, SMALLEST.unauthenticated, BODY_BUDGET.unauthenticated),
  total: byMemory(limit, SMALLEST.total, BODY_BUDGET.total),
})

export const largestBody = ({ perOwner }: Budget): number =>
  Math.min(MAX_BODY_BYTES, Math.floor(perOwner * LARGE_BODIES_SHARE))
