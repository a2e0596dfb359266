/**
 * Judges a team's bounces and complaints of the last 24 hours: no action, a warning to its owners, or a pause of its
 * broadcasts and batch items. DECISIONS: Reputation of a team.
 */

import { percent } from '../../percent.ts'

/** Counts of the emails that were sent in the last 24 hours. */
type Sending = { sent: number; hard_bounced: number; complained: number }

/**
 * Above these percentages bulk email is paused. 0 disables a limit. Fewer emails than `least_emails` aren't judged.
 */
export type ReputationLimits = { bounce_percent: number; complaint_percent: number; least_emails: number }

export const BULK_PAUSE_REASONS = ['team_bounces', 'team_complaints'] as const
type BulkPauseReason = (typeof BULK_PAUSE_REASONS)[number]

/** The reason for a pause of bulk email: this many of the sent emails exceeded the limit. */
export type BulkPause = { reason: BulkPauseReason; sent: number; count: number; limit: number }

/** Above these percentages the owners are warned. */
const WARN_PERCENT = { bounces: 5, complaints: 0.1 }
/** Fewer complaints than this are never judged. */
const FEWEST_COMPLAINTS = 3

const isAbove = (count: number, sent: number, limit: number): boolean => count * 100 > sent * limit

const isPausing = (count: number, sent: number, limit: number): boolean =>
  limit > 0 && isAbove(count, sent, limit)

/** @returns why to pause bulk email, `warning`, or null. */
export function judgeSending(sending: Sending, limits: ReputationLimits): BulkPause | 'warning' | null {
  const { sent, hard_bounced, complained } = sending
  if (sent < limits.least_emails) return null
  const complaints = complained >= FEWEST_COMPLAINTS ? complained : 0
  if (isPausing(hard_bounced, sent, limits.bounce_percent))
    return { reason: 'team_bounces', sent, count: hard_bounced, limit: limits.bounce_percent }
  if (isPausing(complaints, sent, limits.complaint_percent))
    return { reason: 'team_complaints', sent, count: complaints, limit: limits.complaint_percent }
  const isBad =
    isAbove(hard_bounced, sent, WARN_PERCENT.bounces) || isAbove(complaints, sent, WARN_PERCENT.complaints)
  return isBad ? 'warning' : null
}

/** A share in percent, with two decimals. */
export const percentOf = (count: number, sent: number): number =>
  sent === 0 ? 0 : Math.round((count * 10_000) / sent) / 100

/** By how much a limit was exceeded: `12.0 % of 600 emails bounced in 24 hours, and the limit is 10.0 %`. */
export function pauseFigures({ reason, sent, count, limit }: BulkPause): string {
  const what = reason === 'team_bounces' ? 'bounced' : 'were reported as spam'
  return `${percent(count / sent)} of ${sent.toLocaleString('en-US')} emails ${what} in 24 hours, and the limit is ${percent(limit / 100)}`
}

/** Describes both rates for a warning. */
export const describeRates = ({ sent, hard_bounced, complained }: Sending): string =>
  `${percent(hard_bounced / sent)} of ${sent.toLocaleString('en-US')} emails bounced in 24 hours, and ${percent(complained / sent)} were reported as spam`

/** Why an email or a broadcast of the team waits. */
export const bulkPausedBecause = (pause: BulkPause): string =>
  `Broadcasts and batches of the team are paused: ${pauseFigures(pause)}`
