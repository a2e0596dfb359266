/**
 * How a team stands with its send rate and its emails of the period, in the headers of IETF's draft 11 (DECISIONS:
 * Bucket). Pure. A send beyond either is refused in db/messages/emails/accept.ts, by db/accounts/teams/limits.ts.
 */
import type { LimitState } from '../../db/accounts/teams/rate-limit.ts'

/**
 * The window of `sends` is how long an empty bucket takes to be full; its `t` how long this one does, in whole seconds.
 * That of `emails` is the period. It is left out where there is no limit.
 */
export function rateHeaders({ rate, capacity, tokens, quota }: LimitState): Record<string, string> {
  const left = Math.max(0, Math.floor(tokens))
  const full = Math.ceil((capacity - tokens) / rate)
  const policies = [`"sends";q=${Math.floor(capacity)};w=${Math.ceil(capacity / rate)}`]
  const states = [`"sends";r=${left};t=${full}`]
  if (quota) {
    policies.push(`"emails";q=${quota.limit};w=${quota.period_seconds}`)
    states.push(`"emails";r=${quota.left};t=${quota.seconds_left}`)
  }
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: states.join(', ') }
}
