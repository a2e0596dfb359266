/**
 * The charts of a team's first page: how each channel's last day went by the hour, and its last 30 days by the day.
 * Promises: each is drawn from figures that are kept, never from the messages.
 */

import type { Channel } from '../../../db/channels/channel.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { type FigureRow, hoursSince } from '../../../db/stats/daily/stats.sql.ts'
import { headed } from '../components/cell.ts'
import { daysOf, figureSections, hoursOf } from '../components/chart.ts'
import type { Section } from '../components/section.ts'
import { zoneOf } from '../components/zone.ts'
import { compact } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import type { TeamRequest } from '../server/page.ts'

/** How many days are drawn, today's among them. */
export const CHART_DAYS = 30
const HOURS = 24
const HOUR = 3_600_000

/** A channel's messages, as a heading has them. */
export const many = ({ noun }: Channel): string => headed(`${noun}s`)

/**
 * A channel's charts: the last day by the hour, where it had messages, and the last 30 days.
 * @param isNew whether the team has sent nothing at all: then there is no chart to say so.
 */
export async function chartsOf(
  { team, now, cookies }: TeamRequest,
  { database }: PageDeps,
  channel: Channel,
  { days, since, isNew }: { days: readonly FigureRow[]; since: Date; isNew: boolean },
): Promise<Section[]> {
  const from = new Date(Math.floor(now.getTime() / HOUR) * HOUR - (HOURS - 1) * HOUR)
  const figures = await hoursSince(database, team.id, channel, from)
  const hours = hoursOf(channel, figures, from, { hours: HOURS, zone: zoneOf(cookies('zone')) })
  return compact([
    figures.length > 0 && figureSections(`${many(channel)} of the last ${HOURS} hours`, hours),
    ((channel === EMAIL && !isNew) || days.length > 0) &&
      figureSections(`${many(channel)} of the last 30 days`, daysOf(channel, days, since, CHART_DAYS)),
  ])
}
