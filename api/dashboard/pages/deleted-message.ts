/** The page of an unknown message, which is also shown for deleted messages and messages of other teams. */

import { RequestError } from '../../../db/errors.ts'
import { timeOfId } from '../../../db/validation/ids.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { headed, text, time } from '../components/cell.ts'
import type { View } from '../components/section.ts'
import { buildFacts, compact } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { backTo } from '../server/list.ts'
import { type PageAnswer, show, type TeamRequest, teamPath } from '../server/page.ts'

/** A kind of messages: its list, and the audited action of deleting one, if any. */
type Kind = { noun: string; path: string; list: string; removal?: string }

/** Returns the time in a UUIDv7, or null if the ID has none. */
function timeInId(id: string, now: Date): string | null {
  const at = timeOfId(id)
  return id[14] === '7' && at <= now.getTime() ? new Date(at).toISOString() : null
}

function deletedView({ noun, path, list, removal }: Kind, request: TeamRequest<'id'>): View {
  const { team, params, now } = request
  const created = timeInId(params.id, now)
  const audit = removal !== undefined && team.sees === 'owner'
  return {
    title: `${headed(noun)} not found`,
    lead: `This team has no ${noun} with this ID. It was deleted, or it never existed.`,
    back: backTo(request, teamPath(team, path), list),
    actions: {
      links: compact([
        { href: teamPath(team, 'webhooks', 'events'), label: 'Event log' },
        audit && {
          href: `${teamPath(team, 'audit')}?action=${removal}`,
          label: 'Deletions in the audit log',
        },
      ]),
    },
    sections: [
      buildFacts({
        ID: text(params.id, { code: true, copy: true }),
        'Time in its ID': created !== null && time(created, now),
        'Possible reasons': text(
          `${removal === undefined ? 'Cancellation' : 'Deletion by an owner, cancellation'} before the scheduled time, erasure of personal data, or the operator’s retention settings`,
        ),
        'Kept after deletion': text('Its counts in the stats, and webhook events about it for up to 30 days'),
      }),
    ],
  }
}

/** Makes the page of a message, with an explanation for an unknown one. */
export const orDeleted =
  (kind: Kind, handle: (request: TeamRequest<'id'>, deps: PageDeps) => Promise<PageAnswer>) =>
  async (request: TeamRequest<'id'>, deps: PageDeps): Promise<PageAnswer> => {
    try {
      return await handle(request, deps)
    } catch (error) {
      const isMissing = error instanceof RequestError && error.code === 'not_found'
      if (!isMissing || !isUuid(request.params.id)) throw error
      return show(deletedView(kind, request), 404)
    }
  }
