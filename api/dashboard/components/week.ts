/** Builds four tiles that compare the last days with the days before and with the limits of mailbox providers. Pure. */

import type { StatRow } from '../../../db/stats/daily/stats.sql.ts'
import { percent } from './percent.ts'
import type { Tile } from './section.ts'
import {
  ALARMING_SHARE,
  isUnreported,
  pickTone,
  type RateCounts,
  type Share,
  shareWords,
  toRateCounts,
  UNREPORTED,
} from './shares.ts'

const DAY = 86_400_000

function sumsFrom(figures: readonly StatRow[], from: Date, days: number): RateCounts {
  const first = from.toISOString().slice(0, 10)
  const after = new Date(from.getTime() + days * DAY).toISOString().slice(0, 10)
  return toRateCounts(figures.filter(({ day }) => day >= first && day < after))
}

type DayRange = { today: Date; days: number }

/** @param today the last day of the period. @param emails the URL of the list of emails, with a query. */
export function periodTiles(figures: readonly StatRow[], { today, days }: DayRange, emails: string): Tile[] {
  const start = new Date(today.getTime() - (days - 1) * DAY)
  const now = sumsFrom(figures, start, days)
  const before = sumsFrom(figures, new Date(start.getTime() - days * DAY), days)
  const shareTile = (label: string, kind: Share): Tile => {
    const tile = { label, tone: pickTone(now, kind), href: `${emails}&status=${kind}` }
    if (kind === 'delivered' && before.delivered === 0 && isUnreported(now)) return { ...tile, ...UNREPORTED }
    const was = before.sent > 0 ? `${shareWords(before, kind)} before` : ''
    const detail = kind === 'delivered' ? was : `limit ${percent(ALARMING_SHARE[kind])}`
    return { ...tile, value: shareWords(now, kind), detail }
  }
  return [
    {
      label: `Sent, ${days} days`,
      value: now.sent.toLocaleString('en-US'),
      detail: before.sent > 0 ? `${before.sent.toLocaleString('en-US')} before` : '',
      href: emails,
    },
    shareTile('Delivered', 'delivered'),
    shareTile('Bounced', 'bounced'),
    shareTile('Complaints', 'complained'),
  ]
}
