/** Describes bulk actions without a matching email. */
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { broadcastView } from '../../../db/messages/broadcasts/view.ts'
import type { Link } from '../components/section.ts'
import type { PageDeps } from '../server/deps.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { filter, listAddress } from './emails-filter.ts'

/**
 * Describes an empty result. Retention deletes old emails, and their broadcast keeps the stats. After an incomplete
 * search they can still exist, so a link leads to them.
 */
export async function emptyBulk(
  request: Pick<TeamRequest, 'team' | 'query'>,
  { database }: Pick<PageDeps, 'database'>,
  { broadcast, searchedTo }: { broadcast: BroadcastRow | null; searchedTo: string | null },
): Promise<{ empty: string; start?: Link }> {
  const { team, query } = request
  if (searchedTo !== null)
    return {
      empty: `No emails found from ${searchedTo} on. The search took too long and stopped there.`,
      start: broadcast
        ? { href: teamPath(team, 'broadcasts', broadcast.id, 'people'), label: 'Show recipients' }
        : { href: listAddress(request), label: 'Search older emails' },
    }
  const isOnly = broadcast !== null && filter.set(query).size === 1
  const wasMade = isOnly && (await broadcastView(database, broadcast)).stats.made > 0
  return {
    empty: wasMade
      ? 'These emails have been deleted. Their counts are kept.'
      : 'No emails match, so there is nothing to do.',
  }
}
