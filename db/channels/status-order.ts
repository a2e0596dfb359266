/**
 * The order of each channel's statuses. A report only raises a row's status, so that any order and repeats end in the
 * same state.
 */

/** @param rungs the statuses, lowest first. */
export const createLadder = <S extends string>(rungs: readonly [S, ...S[]]) => ({
  higher: (one: S, other: S): S => (rungs.indexOf(one) >= rungs.indexOf(other) ? one : other),
  /** Returns the status that an event raises its row to. Events that raise nothing return the lowest. */
  statusOf: (event: string): S => rungs.find((status) => status === event) ?? rungs[0],
})
