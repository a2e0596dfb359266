/** What counts of emails by status come to, as shares, against what mailbox providers put up with. Pure. */
import type { Tone } from './cell.ts'

/** Shares from which mailbox providers turn against a sender; with fewer than MIN_SENT_FOR_SHARES they mean nothing. */
export const ALARMING_SHARE = { bounced: 0.05, complained: 0.001 }
const MIN_SENT_FOR_SHARES = 50

const DELIVERED = ['delivered', 'opened', 'clicked', 'complained']

export type Sums = { sent: number; delivered: number; bounced: number; complained: number }

/** What counts of emails by status come to: all that is not queued was sent, and what was opened was delivered. */
export function sumsOf(counts: readonly { status: string; count: number }[]): Sums {
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

/** With SMTP most servers report bounces alone: that nothing is known to have arrived says nothing. */
export const isUnreported = (sent: number, delivered: number): boolean => sent > 0 && delivered === 0
/** What a figure says in place of a share then. */
export const UNREPORTED = { value: '–', detail: 'your mail server reports no deliveries' }

export const percent = (share: number): string =>
  `${(share * 100).toFixed(share !== 0 && Math.abs(share) < 0.01 ? 2 : 1)} %`

/** The share of what was sent, in words; a dash where nothing was. */
export const shareWords = (sums: Sums, kind: Share): string =>
  sums.sent === 0 ? '–' : percent(sums[kind] / sums.sent)

/** Bad for a share with which mailbox providers do not put up, once there are enough emails to tell. */
export const toneOf = (sums: Sums, kind: Share): Tone =>
  kind !== 'delivered' && sums.sent >= MIN_SENT_FOR_SHARES && sums[kind] / sums.sent > ALARMING_SHARE[kind]
    ? 'bad'
    : 'plain'
