/** The last seven days beside the seven before: four figures, against what mailbox providers put up with. Pure. */
import type { FigureRow } from '../../../db/figures/daily/figures.sql.ts'
import type { Tone } from './cell.ts'
import type { Tile } from './section.ts'

const DAY = 86_400_000
const WEEK = 7

/** Shares from which mailbox providers turn against a sender; with fewer emails than FEW they mean nothing. */
export const MOST = { bounced: 0.05, complained: 0.001 }
export const FEW = 50

const DELIVERED = ['delivered', 'opened', 'clicked', 'complained']

type Sums = { sent: number; delivered: number; bounced: number; complained: number }

function sumsOf(figures: readonly FigureRow[], from: Date): Sums {
  const first = from.toISOString().slice(0, 10)
  const after = new Date(from.getTime() + WEEK * DAY).toISOString().slice(0, 10)
  const own = figures.filter(({ day }) => day >= first && day < after)
  const sum = (fits: (status: string) => boolean): number =>
    own.filter(({ status }) => fits(status)).reduce((all, { count }) => all + count, 0)
  return {
    sent: sum((status) => status !== 'queued'),
    delivered: sum((status) => DELIVERED.includes(status)),
    bounced: sum((status) => status === 'bounced'),
    complained: sum((status) => status === 'complained'),
  }
}

const percent = (share: number): string =>
  `${(share * 100).toFixed(share !== 0 && Math.abs(share) < 0.01 ? 2 : 1)} %`

/** How much more or less than in the week before. */
function changeOf(now: number, before: number): string {
  if (before === 0) return 'none in the 7 days before'
  const part = Math.round(((now - before) / before) * 100)
  return part === 0
    ? 'as many as in the 7 days before'
    : `${part > 0 ? '+' : '−'}${Math.abs(part)} % on the 7 days before`
}

/** The four figures. @param today the day that counts last. @param emails the path of their list. */
export function weekTiles(figures: readonly FigureRow[], today: Date, emails: string): Tile[] {
  const start = new Date(today.getTime() - (WEEK - 1) * DAY)
  const [now, before] = [sumsOf(figures, start), sumsOf(figures, new Date(start.getTime() - WEEK * DAY))]
  const shareTile = (label: string, kind: 'delivered' | 'bounced' | 'complained', most?: number): Tile => {
    const share = now.sent === 0 ? 0 : now[kind] / now.sent
    const then = before.sent === 0 ? null : before[kind] / before.sent
    const tone: Tone = most !== undefined && now.sent >= FEW && share > most ? 'bad' : 'plain'
    const was = then === null ? 'none in the 7 days before' : `${percent(then)} in the 7 days before`
    return {
      label,
      value: now.sent === 0 ? '–' : percent(share),
      detail: most === undefined ? was : `${was}; keep it below ${percent(most)}`,
      tone,
      href: `${emails}?status=${kind}`,
    }
  }
  return [
    {
      label: 'Sent',
      value: now.sent.toLocaleString('en-US'),
      detail: changeOf(now.sent, before.sent),
      href: emails,
    },
    shareTile('Delivered', 'delivered'),
    shareTile('Bounced', 'bounced', MOST.bounced),
    shareTile('Complaints', 'complained', MOST.complained),
  ]
}
