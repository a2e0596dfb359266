/**
 * A team's send rate: its state and its errors. All processes share the bucket, which is part of the account
 * (limits.ts). DECISIONS: Bucket.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { untilToken } from '../../process/bucket.ts'
import { computeBurst } from '../plans/defaults.ts'
import { TEXTS } from '../texts.ts'
import { type Account, left } from './limits.ts'

/**
 * The state of a team's send rate (sends per second, capacity and content of the bucket) and email quota (null if
 * unlimited). Seconds are rounded up.
 */
export type LimitState = {
  rate: number
  capacity: number
  tokens: number
  quota: { limit: number; left: number; period_seconds: number; seconds_left: number } | null
}

const seconds = (from: Date, to: Date): number => Math.ceil((to.getTime() - from.getTime()) / 1_000)

export const toLimitState = ({ bucket, limits, used, period, now }: Account): LimitState => ({
  rate: limits.rate,
  capacity: computeBurst(limits.rate),
  tokens: bucket.tokens,
  quota:
    limits.emails === null
      ? null
      : {
          limit: limits.emails,
          left: left(limits.emails, used.emails),
          period_seconds: seconds(period.start, period.end),
          seconds_left: seconds(now, period.end),
        },
})

/** An error for a send that exceeds a limit, with the team's state. */
export class LimitReached extends RequestError {
  readonly limit_state: LimitState

  constructor(account: Account, { code, message, retry_after }: RequestError) {
    super(code, message, retry_after)
    this.limit_state = toLimitState(account)
  }
}

/** @returns the error, with the seconds until the next token, rounded up and at least 1. */
export function rateReached(account: Account): LimitReached {
  const wait = Math.max(1, Math.ceil(untilToken(account.bucket.tokens, account.limits.rate)))
  const message = fill(TEXTS.rateExceeded, { seconds: wait })
  return new LimitReached(account, new RequestError('rate_limited', message, wait))
}
