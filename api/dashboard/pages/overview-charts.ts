/** The chart on a team's overview, of the last hours or days of a channel. It uses stored counts, never messages. */

import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { dayBefore } from '../../../db/stats/daily/fold.ts'
import { hoursSince, type StatRow } from '../../../db/stats/daily/stats.sql.ts'
import { keysOf } from '../../../db/validation/keys.ts'
import { headed } from '../components/cell.ts'
import { countByDay, countByHour, figureSections } from '../components/chart.ts'
import type { Switch } from '../components/section.ts'
import { parseZone } from '../components/zone.ts'
import { compact } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { addressWith, wordParam } from '../server/list.ts'
import type { TeamRequest } from '../server/page.ts'

export const CHART_DAYS = 30
const HOURS = 24
const HOUR = 3_600_000

const RANGES = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' } as const
type Range = keyof typeof RANGES
const RANGE_NAMES = keysOf(RANGES)

export const many = ({ noun }: Channel): string => headed(`${noun}s`)

type ChannelStats = ReadonlyMap<Channel, readonly StatRow[]>

/** Reads the channel and period, by default the emails of the last 30 days. @throws RequestError bad_request. */
function chartAsked({ query }: Pick<TeamRequest, 'query'>): { channel: Channel; range: Range } {
  const names = CHANNELS.map(({ name }) => name)
  const name = wordParam(query, 'channel', names) ?? EMAIL.name
  return {
    channel: CHANNELS.find((channel) => channel.name === name) ?? EMAIL,
    range: wordParam(query, 'range', RANGE_NAMES) ?? '30d',
  }
}

/** Returns links to other periods, and to other channels if they have messages. */
function switches(request: TeamRequest, figures: ChannelStats): Switch[] {
  const asked = chartAsked(request)
  const used = CHANNELS.filter((channel) => channel === EMAIL || (figures.get(channel) ?? []).length > 0)
  const link = (label: string, name: string, value: string, current: boolean) => ({
    href: addressWith(request, { [name]: value }),
    label,
    current,
  })
  const channels = {
    label: 'Channel',
    links: used.map(({ name, title }) => link(title, 'channel', name, name === asked.channel.name)),
  }
  const ranges = {
    label: 'Time',
    links: RANGE_NAMES.map((range) => link(RANGES[range], 'range', range, range === asked.range)),
  }
  return compact([used.length > 1 && channels, ranges])
}

/** Builds the requested chart. @param figures each channel's daily counts. */
export async function chartSections(request: TeamRequest, { database }: PageDeps, figures: ChannelStats) {
  const { team, now, cookies } = request
  const { channel, range } = chartAsked(request)
  const title = `${many(channel)} of the last ${RANGES[range]}`
  if (range === '24h') {
    const from = new Date(Math.floor(now.getTime() / HOUR) * HOUR - (HOURS - 1) * HOUR)
    const hours = await hoursSince(database, team.id, channel, from)
    const stretch = countByHour(channel, hours, from, { hours: HOURS, zone: parseZone(cookies('zone')) })
    return figureSections(title, stretch, switches(request, figures))
  }
  const days = range === '7d' ? 7 : CHART_DAYS
  const stretch = countByDay(channel, figures.get(channel) ?? [], dayBefore(now, days - 1), days)
  return figureSections(title, stretch, switches(request, figures))
}
