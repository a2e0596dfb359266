/** Limits the time of a message's transfer to a provider by its size. Pure. */

/** The assumed minimum bandwidth, in bytes per second. */
const MIN_BYTES_PER_SECOND = 64 * 1024

/** Returns the extra time for a message of this size, in milliseconds. */
export const sendingTime = (size: number): number => Math.floor(size / MIN_BYTES_PER_SECOND) * 1_000
