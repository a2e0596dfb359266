/** How long a message may take on its way to a provider, by its size. Pure. */

/** What the slowest way is taken to carry, in bytes a second. */
const MIN_BYTES_PER_SECOND = 64 * 1024

/** The time that a message of this size gets on top of any message's, in milliseconds. */
export const sendingTime = (size: number): number => Math.floor(size / MIN_BYTES_PER_SECOND) * 1_000
