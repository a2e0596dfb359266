/** The filter of a team's emails: how the address, or a form, holds it. */

import { requireTeam } from '../../../db/accounts/teams/view.ts'
import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { EmailFilter } from '../../../db/messages/emails/search.ts'
import { zoneOf } from '../components/zone.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, DAY_RANGE, defineFilter, idOf, search } from '../server/filter.ts'
import type { TeamRequest } from '../server/page.ts'
import { parseSearch } from '../server/search.ts'
import { TEXTS } from '../texts.ts'
import { SCHEDULED_STATUS, statusFilter } from './scheduled.ts'

export const filter = defineFilter(
  {
    q: search('Search', { placeholder: 'Recipient, subject or ID' }),
    status: chips([...EMAIL_LADDER, SCHEDULED_STATUS]),
  },
  {
    recipient: search('Recipient', { placeholder: 'someone@example.com' }),
    subject: search('Subject contains'),
    id: search('Message, request or idempotency ID', { short: 'ID' }),
    domain: search('From domain'),
    template: idOf('Template'),
    broadcast: idOf('Broadcast'),
    tag: search('Tag'),
    ...DAY_RANGE,
  },
)

/** The emails that the address, or a form, means. @throws RequestError bad_request. */
export function parseEmailFilter(query: URLSearchParams, zone: string): Omit<EmailFilter, 'team_id'> {
  const { q, status, template, broadcast, ...asked } = filter.read(query, zone)
  const parsed = q === undefined ? {} : parseSearch(q)
  const twice = (['recipient', 'id', 'subject'] as const).find((name) => name in parsed && asked[name])
  if (twice !== undefined) throw invalidField('q', fill(TEXTS.otherInSearch, { thing: twice }))
  return { ...asked, ...parsed, ...statusFilter(status), template_id: template, broadcast_id: broadcast }
}

/** The same, with what a search of a team's emails goes by: no email of the team is older than it. */
export async function searchOf({ team, query, now, cookies }: TeamRequest, { database }: PageDeps) {
  const since = new Date((await requireTeam(database, team.id)).created_at)
  return { ...parseEmailFilter(query, zoneOf(cookies('zone'))), team_id: team.id, since, now }
}
