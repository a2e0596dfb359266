/** Lists running and scheduled broadcasts of a team, and its scheduled messages. */

import { openBroadcasts } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { type BroadcastView, broadcastViews } from '../../../db/messages/broadcasts/view.ts'
import { plural } from '../../../db/plural.ts'
import { bar, type Cell, number, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { buildTable } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { broadcastStateCell } from './broadcasts.ts'
import { SCHEDULED_STATUS, scheduledMessages } from './scheduled.ts'

const MAX_BROADCASTS = 5

const formatSent = ({ audience, stats }: BroadcastView): string =>
  audience === null ? '' : `${number(stats.made - stats.queued).text} of ${number(audience).text}`

const progressCell = ({ state, audience, stats }: BroadcastView): Cell =>
  audience === null
    ? text('')
    : bar(stats.made - stats.queued + stats.skipped, audience, state === 'sending' ? 'busy' : 'plain')

/** Broadcasts that need manual action come first, and scheduled ones last. */
const rank = ({ state, state_reason }: BroadcastView): number =>
  state === 'paused' ? Number(state_reason === null) : state === 'sending' ? 2 : 3

export async function aheadSection({ team, now }: TeamRequest, deps: PageDeps): Promise<Section[]> {
  const newest = await openBroadcasts(deps.database, team.id, MAX_BROADCASTS)
  const views = await broadcastViews(deps.database, newest)
  const open = views.toSorted((one, other) => rank(one) - rank(other))
  const scheduled = await scheduledMessages(team, deps)
  const hasStarted = open.some(({ audience }) => audience !== null)
  const rows = [
    ...open.map((view) => ({
      Name: text(view.name, { href: teamPath(team, 'broadcasts', view.id) }),
      Status: broadcastStateCell(view),
      Progress: hasStarted && progressCell(view),
      Sent: text(formatSent(view), { number: true }),
      Start: time(view.state === 'scheduled' ? view.send_at : view.started_at, now, 'not started'),
    })),
    ...scheduled.map(({ channel, messages, next }) => ({
      Name: text(plural(messages, `scheduled ${channel.noun}`), {
        href: `${teamPath(team, channel.path)}?status=${SCHEDULED_STATUS}`,
      }),
      Status: broadcastStateCell({ state: 'scheduled', state_reason: null }),
      Progress: hasStarted && text(''),
      Sent: text('', { number: true }),
      Start: time(next, now),
    })),
  ]
  if (rows.length === 0) return []
  const title = scheduled.length === 0 ? 'Broadcasts running and next' : 'Running and next'
  return [buildTable(rows, (row) => row, { title, id: 'ahead', live: true, empty: '' })]
}
