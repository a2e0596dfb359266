/** Delivery stats of a template, like those of all emails on the overview. */
import { countsOfTemplate } from '../../../db/messages/emails/of-template.sql.ts'
import { plural } from '../../../db/plural.ts'
import { number } from '../components/cell.ts'
import type { Section, Tile } from '../components/section.ts'
import {
  isUnreported,
  pickTone,
  type Share,
  shareWords,
  toRateCounts,
  UNREPORTED,
} from '../components/shares.ts'
import type { PageDeps } from '../server/deps.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'

const FIGURE_DAYS = 30
const MAX_COUNTED = 5_000

/**
 * Builds tiles for the last 30 days. Only the newest emails are counted. A note appears if there are more.
 */
export async function templateFigures(
  { team, now }: TeamRequest,
  { database }: PageDeps,
  id: string,
): Promise<Section> {
  const since = new Date(now.getTime() - FIGURE_DAYS * 86_400_000)
  const counts = await countsOfTemplate(database, { team_id: team.id, id }, { since, most: MAX_COUNTED })
  const made = counts.reduce((sum, { count }) => sum + count, 0)
  const sums = toRateCounts(counts)
  const emails = `${teamPath(team, 'emails')}?kind=all&template=${id}`
  const share = (label: string, kind: Share): Tile => ({
    label,
    value: shareWords(sums, kind),
    detail: sums[kind] === 0 ? undefined : plural(sums[kind], 'email'),
    tone: pickTone(sums, kind),
    href: `${emails}&status=${kind}`,
    ...(kind === 'delivered' && isUnreported(sums) ? UNREPORTED : {}),
  })
  const unsent = made - sums.sent
  return {
    kind: 'tiles',
    title: `The last ${FIGURE_DAYS} days`,
    note:
      made === MAX_COUNTED
        ? `Only the newest ${number(made).text} emails that use this template are counted.`
        : undefined,
    tiles: [
      {
        label: 'Sent',
        value: number(sums.sent).text,
        detail: unsent === 0 ? undefined : `${number(unsent).text} not sent`,
        href: emails,
      },
      share('Delivered', 'delivered'),
      share('Bounced', 'bounced'),
      share('Complaints', 'complained'),
    ],
  }
}
