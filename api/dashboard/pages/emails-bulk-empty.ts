/** Describes bulk actions with an empty or an incomplete search. */
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { broadcastView } from '../../../db/messages/broadcasts/view.ts'
import type { EmailFilter } from '../../../db/messages/emails/search.ts'
import { firstIdAt, timeOfId } from '../../../db/validation/ids.ts'
import type { Link, Section } from '../components/section.ts'
import { momentWords, parseZone } from '../components/zone.ts'
import { compact } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { addressWith, idParam, SEARCH_FURTHER } from '../server/list.ts'
import type { TeamRequest } from '../server/page.ts'
import { earlier, filter } from './emails-filter.ts'

/** The parameter with the end of the previous search. Only older emails are counted. */
export const BEFORE = 'before'

/** @throws RequestError bad_request. */
export function readBefore({ query }: Pick<TeamRequest, 'query'>): Date | undefined {
  const id = idParam(query, BEFORE)
  return id === undefined ? undefined : new Date(timeOfId(id))
}

export const upTo = <F extends EmailFilter>(search: F, before: Date | undefined): F => ({
  ...search,
  to: earlier(search.to, before),
})

/** True if the filter is only the broadcast. */
export const isWhole = ({ query }: Pick<TeamRequest, 'query'>): boolean =>
  filter.set(query).size === 1 && !query.has(BEFORE)

type Asking = Pick<TeamRequest, 'path' | 'query' | 'cookies'>

const words = (at: Date, { cookies }: Asking): string =>
  momentWords(at.toISOString(), parseZone(cookies('zone')))

/** Says which emails weren't searched. */
export function limitsOfSearch(request: Asking, lookedTo: Date | null): Section | false {
  const before = readBefore(request)
  const paragraphs = compact([
    before && `Only emails from before ${words(before, request)} are included.`,
    lookedTo && `The search took too long. Emails from before ${words(lookedTo, request)} aren’t included.`,
  ])
  return paragraphs.length > 0 && { kind: 'text', paragraphs }
}

/**
 * Describes an empty result. Retention deletes old emails, and their broadcast keeps the stats. After an incomplete
 * search they can still exist, so a link continues it.
 */
export async function emptyBulk(
  request: Asking,
  { database }: Pick<PageDeps, 'database'>,
  { broadcast, lookedTo }: { broadcast: BroadcastRow | null; lookedTo: Date | null },
): Promise<{ empty: string; start?: Link }> {
  if (lookedTo !== null)
    return {
      empty: `No emails found since ${words(lookedTo, request)}. The search took too long and stopped there.`,
      start: { href: addressWith(request, { [BEFORE]: firstIdAt(lookedTo) }), label: SEARCH_FURTHER },
    }
  const wasMade =
    broadcast !== null && isWhole(request) && (await broadcastView(database, broadcast)).stats.made > 0
  return {
    empty: wasMade
      ? 'These emails have been deleted. Their counts are kept.'
      : 'No emails match, so there is nothing to do.',
  }
}
