/** The last seven days beside the seven before: four figures, against what mailbox providers put up with. Pure. */
import type { FigureRow } from '../../../db/stats/daily/stats.sql.ts'
import type { Tile } from './section.ts'
import {
  ALARMING_SHARE,
  isUnreported,
  percent,
  type Share,
  type Sums,
  shareWords,
  sumsOf,
  toneOf,
  UNREPORTED,
} from './shares.ts'

const DAY = 86_400_000
const WEEK = 7

function weekFrom(figures: readonly FigureRow[], from: Date): Sums {
  const first = from.toISOString().slice(0, 10)
  const after = new Date(from.getTime() + WEEK * DAY).toISOString().slice(0, 10)
  return sumsOf(figures.filter(({ day }) => day >= first && day < after))
}

/** How much more or less than in the week before; nothing where that was empty. */
function changeOf(now: number, before: number): string {
  if (before === 0) return ''
  const part = Math.round(((now - before) / before) * 100)
  return part === 0
    ? 'as many as in the 7 days before'
    : `${part > 0 ? '+' : '−'}${Math.abs(part)} % on the 7 days before`
}

/** The four figures. @param today the day that counts last. @param emails the path of their list. */
export function weekTiles(figures: readonly FigureRow[], today: Date, emails: string): Tile[] {
  const start = new Date(today.getTime() - (WEEK - 1) * DAY)
  const [now, before] = [weekFrom(figures, start), weekFrom(figures, new Date(start.getTime() - WEEK * DAY))]
  const shareTile = (label: string, kind: Share): Tile => {
    const tile = { label, tone: toneOf(now, kind), href: `${emails}?status=${kind}` }
    if (kind === 'delivered' && isUnreported(now.sent, now.delivered + before.delivered))
      return { ...tile, ...UNREPORTED }
    const was = before.sent > 0 && `${shareWords(before, kind)} in the 7 days before`
    const limit = kind !== 'delivered' && `keep it below ${percent(ALARMING_SHARE[kind])}`
    return { ...tile, value: shareWords(now, kind), detail: [was, limit].filter(Boolean).join('; ') }
  }
  return [
    {
      label: 'Sent',
      value: now.sent.toLocaleString('en-US'),
      detail: changeOf(now.sent, before.sent),
      href: emails,
    },
    shareTile('Delivered', 'delivered'),
    shareTile('Bounced', 'bounced'),
    shareTile('Complaints', 'complained'),
  ]
}
