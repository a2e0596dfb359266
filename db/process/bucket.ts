/**
 * The token bucket behind every rate: a team's sends and a sender's rate limit. Refills continuously, up to the
 * capacity. A clock that moves back grants nothing. Pure: the caller passes the database's time as `now` (DECISIONS:
 * Bucket).
 */

export type Bucket = { tokens: number; refilled_at: Date }

/** Tokens per second, and the maximum number of tokens. */
type Flow = { rate: number; capacity: number }

export function refill(bucket: Bucket, { rate, capacity }: Flow, now: Date): Bucket {
  const seconds = Math.max(0, now.getTime() - bucket.refilled_at.getTime()) / 1_000
  return { tokens: Math.min(capacity, bucket.tokens + seconds * rate), refilled_at: now }
}

/** Returns the seconds until one token is available. */
export const untilToken = (tokens: number, rate: number): number => Math.max(0, (1 - tokens) / rate)
