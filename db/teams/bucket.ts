/**
 * The token bucket of a team's send rate: capacity 5 × rate, refilled continuously (contract §8, decisions: bucket).
 * Pure: time arrives as `now`.
 */

const BURST = 5

export type Bucket = { tokens: number; refilled_at: Date }

/** How many tokens the bucket holds at most, for a rate in sends per second. */
export const capacity = (rate: number): number => BURST * rate

/** The bucket at `now`. A clock that is behind (another process's) adds nothing and takes nothing. */
export function refill(bucket: Bucket, rate: number, now: Date): Bucket {
  const seconds = Math.max(0, now.getTime() - bucket.refilled_at.getTime()) / 1_000
  return {
    tokens: Math.min(capacity(rate), bucket.tokens + seconds * rate),
    refilled_at: now > bucket.refilled_at ? now : bucket.refilled_at,
  }
}

/** Whole seconds, rounded up, until one token is there; at least 1. */
export const secondsUntilToken = (bucket: Bucket, rate: number): number =>
  Math.max(1, Math.ceil((1 - bucket.tokens) / rate))
