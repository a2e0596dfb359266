/** The filter of a team's emails: how the address, or a form, holds it. */

import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { EmailFilter } from '../../../db/messages/emails/search.ts'
import { zoneOf } from '../components/zone.ts'
import { chips, DAY_RANGE, defineFilter, idOf, oneOf, search } from '../server/filter.ts'
import type { TeamRequest } from '../server/page.ts'
import { parseSearch } from '../server/search.ts'
import { TEXTS } from '../texts.ts'
import { SCHEDULED_STATUS, statusFilter } from './scheduled.ts'

/** Which emails a list has. Those of a broadcast would hide all others. */
const KINDS = ['single', 'broadcasts', 'all'] as const

/** The search of a link that means emails of broadcasts, too. */
export const ALL_EMAILS = { kind: 'all' } as const

export const filter = defineFilter(
  {
    q: search('Search', { placeholder: 'Recipient, name, subject or ID' }),
    kind: oneOf('Emails', KINDS, {
      options: [
        { value: '', label: 'Single emails' },
        { value: 'broadcasts', label: 'Of broadcasts' },
        { value: 'all', label: 'All emails' },
      ],
    }),
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

const IN_BROADCAST = { single: false, broadcasts: true, all: undefined } as const

/** The emails that the address, or a form, means. @throws RequestError bad_request. */
export function parseEmailFilter(query: URLSearchParams, zone: string): Omit<EmailFilter, 'team_id'> {
  const { q, kind, status, template, broadcast, ...asked } = filter.read(query, zone)
  const parsed = q === undefined ? {} : parseSearch(q)
  const twice = (['recipient', 'id', 'subject'] as const).find((name) => name in parsed && asked[name])
  if (twice !== undefined) throw invalidField('q', fill(TEXTS.otherInSearch, { thing: twice }))
  // Who names an email or a broadcast means that one, whatever it is.
  const isNamed = broadcast !== undefined || asked.id !== undefined || 'id' in parsed
  const in_broadcast = isNamed && kind === undefined ? undefined : IN_BROADCAST[kind ?? 'single']
  const which = in_broadcast === undefined ? {} : { in_broadcast }
  return {
    ...asked,
    ...parsed,
    ...which,
    ...statusFilter(status),
    template_id: template,
    broadcast_id: broadcast,
  }
}

/** The same, with what a search of a team's emails goes by: no email of the team is older than it. */
export const searchOf = ({ team, query, now, cookies }: TeamRequest) => ({
  ...parseEmailFilter(query, zoneOf(cookies('zone'))),
  ...{ team_id: team.id, since: new Date(team.created_at), now },
})
