/**
 * A team's send rate: how an account stands with it, and what is refused for it. The bucket is the account's
 * (limits.ts), so that all processes share it. Pure. DECISIONS: Bucket.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { untilToken } from '../../process/bucket.ts'
import { burstOf } from '../plans/defaults.ts'
import { TEXTS } from '../texts.ts'
import { type Account, left } from './limits.ts'

/**
 * How a team stands with its send rate (sends per second, the most that its bucket holds, what it holds now) and with
 * its emails of the period; `quota` null: no limit. Seconds are whole, rounded up.
 */
export type LimitState = {
  rate: number
  capacity: number
  tokens: number
  quota: { limit: number; left: number; period_seconds: number; seconds_left: number } | null
}

const seconds = (from: Date, to: Date): number => Math.ceil((to.getTime() - from.getTime()) / 1_000)

export const limitStateOf = ({ bucket, limits, used, period, now }: Account): LimitState => ({
  rate: limits.rate,
  capacity: burstOf(limits.rate),
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

/** A send that is refused for what the team has left, with how it stands. */
export class LimitReached extends RequestError {
  readonly limit_state: LimitState

  constructor(account: Account, ...refusal: ConstructorParameters<typeof RequestError>) {
    super(...refusal)
    this.limit_state = limitStateOf(account)
  }
}

/** @returns the refusal, with the whole seconds, rounded up and at least 1, until a token is there. */
export function rateReached(account: Account): LimitReached {
  const wait = Math.max(1, Math.ceil(untilToken(account.bucket.tokens, account.limits.rate)))
  return new LimitReached(account, 'rate_limited', fill(TEXTS.rateExceeded, { seconds: wait }), wait)
}
