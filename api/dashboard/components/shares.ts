/** Calculates delivery, bounce and complaint rates, and compares them with the limits of mailbox providers. Pure. */

import type { Tone } from './cell.ts'
import { percent } from './percent.ts'

/** Rates above which mailbox providers block a sender. They need MIN_SENT_FOR_SHARES emails to be meaningful. */
export const ALARMING_SHARE = { bounced: 0.05, complained: 0.001 }
export const MIN_SENT_FOR_SHARES = 50

const DELIVERED = ['delivered', 'opened', 'clicked', 'complained']

export type RateCounts = { sent: number; delivered: number; bounced: number; complained: number }

/** Sums counts. Queued and suppressed emails aren't sent. Opened, clicked and complained ones were delivered. */
export function toRateCounts(counts: readonly { status: string; count: number }[]): RateCounts {
  const sum = (fits: (status: string) => boolean): number =>
    counts.filter(({ status }) => fits(status)).reduce((all, { count }) => all + count, 0)
  return {
    sent: sum((status) => status !== 'queued' && status !== 'suppressed'),
    delivered: sum((status) => DELIVERED.includes(status)),
    bounced: sum((status) => status === 'bounced'),
    complained: sum((status) => status === 'complained'),
  }
}

export type Share = 'delivered' | 'bounced' | 'complained'

/** True if deliveries aren't reported. Most SMTP servers only report bounces. */
export const isUnreported = ({ sent, delivered, bounced }: RateCounts): boolean =>
  sent > bounced && delivered === 0
/** Shown instead of the rate if deliveries aren't reported. */
export const UNREPORTED = { value: '–', detail: 'your mail server doesn’t report deliveries' }

/** Formats the share of sent emails, or a dash if none were sent. */
export const shareWords = (sums: RateCounts, kind: Share): string =>
  sums.sent === 0 ? '–' : percent(sums[kind] / sums.sent)

/** Returns `bad` if a rate is above the limit of mailbox providers, with enough emails. */
export const pickTone = (sums: RateCounts, kind: Share): Tone =>
  kind !== 'delivered' && sums.sent >= MIN_SENT_FOR_SHARES && sums[kind] / sums.sent > ALARMING_SHARE[kind]
    ? 'bad'
    : 'plain'
