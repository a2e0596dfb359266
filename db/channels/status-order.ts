/**
 * The ladder of statuses of each channel. Pure.
 * Promises: a report moves a row up and never down, so any order and any number of repeats end in the same state.
 */

/** @param rungs the statuses, lowest first. */
export const createLadder = <S extends string>(rungs: readonly [S, ...S[]]) => ({
  higher: (one: S, other: S): S => (rungs.indexOf(one) >= rungs.indexOf(other) ? one : other),
  /** The status that an event lifts its row to; the lowest when it moves nothing. */
  statusOf: (event: string): S => rungs.find((status) => status === event) ?? rungs[0],
})
