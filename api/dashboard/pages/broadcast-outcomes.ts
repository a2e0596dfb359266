/** Counts and shares of a broadcast's emails by outcome, compared with the limits of mailbox providers. */

import { LEAST } from '../../../db/messages/broadcasts/auto-pause.ts'
import type { BroadcastView } from '../../../db/messages/broadcasts/view.ts'
import type { EmailStatus } from '../../../db/messages/emails/status.ts'
import { plural } from '../../../db/plural.ts'
import { bar, type Cell, number, type Tone, text } from '../components/cell.ts'
import { percent } from '../components/percent.ts'
import type { Section } from '../components/section.ts'
import { ALARMING_SHARE, isUnreported, pickTone, type RateCounts, UNREPORTED } from '../components/shares.ts'
import { buildTable, compact } from '../server/builders.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'

export const share = (count: number, of: number): string => (of === 0 ? '' : percent(count / of))

/** Counts the contacts without an email, except skipped contacts. */
export const countUnsent = ({ stats, audience }: Pick<BroadcastView, 'stats' | 'audience'>): number =>
  Math.max(0, (audience ?? 0) - stats.made - stats.skipped) + stats.queued

/** Sums the emails of a broadcast. Opened, clicked and complained ones are also delivered. */
export const sumRates = ({ stats }: Pick<BroadcastView, 'stats'>): RateCounts => ({
  sent: stats.made - stats.queued,
  delivered: stats.delivered + stats.opened + stats.clicked + stats.complained,
  bounced: stats.bounced,
  complained: stats.complained,
})

type Limited = keyof typeof ALARMING_SHARE

/** Returns `bad` if a rate is above its limit, with enough emails for an automatic pause. */
export const limitTone = (sums: RateCounts, kind: Limited): Tone =>
  sums.sent >= LEAST[kind].left && sums[kind] >= LEAST[kind].count ? pickTone(sums, kind) : 'plain'

/** Describes the limit of a rate, and for a rate above it that can't pause the broadcast yet, from when it can. */
function limitWords(sums: RateCounts, kind: Limited): string {
  const limit = `limit\u00a0${percent(ALARMING_SHARE[kind])}`
  if (pickTone(sums, kind) === limitTone(sums, kind)) return limit
  const { left, count } = LEAST[kind]
  return `${limit} after ${sums.sent < left ? plural(left, 'email') : plural(count, 'complaint')}`
}

const NOUNS: Readonly<Record<Limited, string>> = { bounced: 'Bounces', complained: 'Complaints' }

/** Describes a second rate above its limit, if the first rate paused the broadcast. */
export function describeOtherRate(reason: string, view: Pick<BroadcastView, 'stats'>): string {
  const sums = sumRates(view)
  const other: Limited = reason.endsWith('bounces') ? 'complained' : 'bounced'
  if (limitTone(sums, other) !== 'bad') return ''
  const rate = `${share(sums[other], sums.sent)} of ${plural(sums.sent, 'email')}`
  return `${NOUNS[other]} are also above their limit: ${rate}, limit ${percent(ALARMING_SHARE[other])}`
}

type OutcomeRow = {
  label: string
  count: number
  href: string
  tone: Tone
  note?: string
  share?: string
  alarm?: Tone
}

/** Builds the row of unsent contacts. An ended broadcast never reaches them. */
function unsentRow(view: BroadcastView, href: string): OutcomeRow | false {
  const count = countUnsent(view)
  const isEnded = view.state === 'sent' || view.state === 'cancelled'
  if (count === 0) return false
  return { label: isEnded ? 'Not sent' : 'Not sent yet', count, href, tone: 'plain' }
}

/** Builds the cell with a share. One above its limit is red. */
const shareCell = ({ share: part = '', alarm }: OutcomeRow): Cell => ({
  text: part,
  number: true,
  tone: alarm === 'bad' ? alarm : undefined,
})

/** Builds the table of outcomes. Counts are cumulative, and shares are of the emails sent. */
export function outcomes(view: BroadcastView, { team, params }: TeamRequest<'id'>): Section {
  const { stats: counted, audience } = view
  const { made, skipped, opened, clicked, bounced, complained } = counted
  const sums = sumRates(view)
  const { sent, delivered } = sums
  const open = sent - delivered - bounced
  const people = (status?: EmailStatus): string =>
    `${teamPath(team, 'broadcasts', params.id, 'people')}${status ? `?${new URLSearchParams({ status })}` : ''}`
  const part = (
    label: string,
    status: EmailStatus,
    count: number,
    more: Partial<OutcomeRow> = {},
  ): OutcomeRow => ({
    ...{ label, count, href: people(status), tone: 'good' },
    share: share(count, sent),
    ...more,
  })
  const limited = (kind: Limited): Partial<OutcomeRow> => ({
    tone: 'bad',
    note: limitWords(sums, kind),
    alarm: limitTone(sums, kind),
  })
  const unreported = isUnreported(sums) ? UNREPORTED.detail : ''
  const rows: OutcomeRow[] = compact<OutcomeRow>([
    { label: 'Audience', count: audience ?? made, href: people(), tone: 'plain' },
    unsentRow(view, people(counted.queued > 0 ? 'queued' : undefined)),
    part('Sent', 'sent', sent, { tone: 'busy', share: '' }),
    part('Delivered', 'delivered', delivered, {
      ...(unreported ? { share: '' } : {}),
      note: unreported || (open > 0 ? `${number(open).text} not reported` : ''),
    }),
    part('Opened', 'opened', opened + clicked, unreported ? { share: '' } : {}),
    part('Clicked', 'clicked', clicked, unreported ? { share: '' } : {}),
    part('Bounced', 'bounced', bounced, limited('bounced')),
    part('Complained', 'complained', complained, limited('complained')),
    skipped > 0 && {
      label: 'Skipped',
      count: skipped,
      href: teamPath(team, 'broadcasts', params.id, 'skips'),
      tone: 'plain',
    },
  ])
  return buildTable(
    rows,
    (row) => ({
      Outcome: text(row.label, { href: row.href, detail: row.note || undefined }),
      'Of audience': bar(row.count, Math.max(audience ?? 0, made, 1), row.tone),
      Contacts: number(row.count),
      'Of sent': shareCell(row),
    }),
    { id: 'outcomes', live: true, grow: [], empty: '' },
  )
}
