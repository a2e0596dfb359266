/**
 * How a team stands with its send rate, in the headers of IETF's draft 11 (DECISIONS: Bucket). Pure. A send
 * beyond the rate is refused in db/messages/emails/accept.ts, by the bucket of db/accounts/teams/limits.ts.
 */
import type { Standing } from '../../db/accounts/teams/limits.ts'

/** The window is how long an empty bucket takes to be full; `t` how long this one does, in whole seconds. */
export function rateHeaders({ rate, capacity, tokens }: Standing): Record<string, string> {
  const left = Math.max(0, Math.floor(tokens))
  const full = Math.ceil((capacity - tokens) / rate)
  return {
    'RateLimit-Policy': `"sends";q=${Math.floor(capacity)};w=${Math.ceil(capacity / rate)}`,
    RateLimit: `"sends";r=${left};t=${full}`,
  }
}
