/**
 * The token bucket of a team's send rate: capacity 5 × rate, refilled continuously (contract §8, decisions: bucket).
 * Pure: time arrives as `now`.
 */

const BURST = 5

export type Bucket = { tokens: number; refilled_at: Date }

/** How many tokens the bucket holds at most, for a rate in sends per second. */
export const capacity = (rate: number): number => BURST * rate

/** How far the clocks of two processes may be apart, in milliseconds. */
const SKEW = 5_000

/**
 * When something was last refilled, as it counts at `now`. A clock that is a little behind (another process's) waits to
 * be caught up with, so that nothing is granted twice; a time far ahead was a clock gone wrong, and counts as now.
 */
export const refilledBy = (stored: Date, now: Date): Date =>
  stored.getTime() - now.getTime() > SKEW ? now : stored

/** The bucket at `now`. */
export function refill(bucket: Bucket, rate: number, now: Date): Bucket {
  const since = refilledBy(bucket.refilled_at, now)
  const seconds = Math.max(0, now.getTime() - since.getTime()) / 1_000
  return {
    tokens: Math.min(capacity(rate), bucket.tokens + seconds * rate),
    refilled_at: now > since ? now : since,
  }
}

/** Whole seconds, rounded up, until one token is there; at least 1. */
export const secondsUntilToken = (bucket: Bucket, rate: number): number =>
  Math.max(1, Math.ceil((1 - bucket.tokens) / rate))
