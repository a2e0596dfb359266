/**
 * The RateLimit headers: a team's send rate and its emails of the period, as in IETF draft 11 (DECISIONS: Bucket).
 * Pure. db/messages/emails/accept.ts rejects sends beyond a limit.
 */
import type { LimitState } from '../../db/accounts/teams/rate-limit.ts'

/**
 * `w` of `sends` is the time in which an empty bucket fills, and `t` the time until this one is full. `w` of `emails`
 * is the period. `emails` is missing if the team has no quota. All are in seconds.
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
