/** How many bytes of bodies a process holds at once. */
import { byMemory } from '../../db/process/memory.ts'
import { MAX_BODY_BYTES } from './read-body.ts'

const MIB = 1024 * 1024
/**
 * What a process holds of one owner's bodies, of all whose senders have proved nothing, of theirs at one door, and of
 * all together, in bytes; and how long one waits for room, in milliseconds: its socket is not read meanwhile. A body
 * takes several times its size on its way to the database. However many strangers send at once, there is room for the
 * largest body of a team, and however many send to one door, there is room at the others.
 */
export const BODY_BUDGET = {
  ofOne: 12 * MIB,
  unproved: 7 * MIB,
  atOneDoor: 3.5 * MIB,
  inAll: 20 * MIB,
  patience: 25_000,
}
export type Budget = typeof BODY_BUDGET

/** Bodies of more bytes leave room for others: LARGE_BODIES_SHARE of each bound is all that they may fill. */
export const SMALL_BODY_BYTES = 64 * 1024
export const LARGE_BODIES_SHARE = 7 / 8

/** With little memory: room for one body of 3.5 MiB of a team, and for the largest post of a door, 3 MiB. */
const SMALLEST = { ofOne: 4 * MIB, unproved: 3.5 * MIB, inAll: 8 * MIB }

/** The budget of a process with a memory limit in bytes. */
export const budgetFor = (limit: number): Budget => ({
  ...BODY_BUDGET,
  ofOne: byMemory(limit, SMALLEST.ofOne, BODY_BUDGET.ofOne),
  unproved: byMemory(limit, SMALLEST.unproved, BODY_BUDGET.unproved),
  inAll: byMemory(limit, SMALLEST.inAll, BODY_BUDGET.inAll),
})

/** The largest body that ever finds room. */
export const largestBody = ({ ofOne }: Budget): number =>
  Math.min(MAX_BODY_BYTES, Math.floor(ofOne * LARGE_BODIES_SHARE))
