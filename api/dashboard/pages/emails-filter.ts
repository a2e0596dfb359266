/** The filter of a team's emails. */

import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { type BroadcastRow, broadcastById } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { emailTimes } from '../../../db/messages/broadcasts/view.ts'
import type { EmailFilter } from '../../../db/messages/emails/search.ts'
import { parseZone } from '../components/zone.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, DAY_RANGE, defineChoice, defineFilter, defineId, search } from '../server/filter.ts'
import { addressWith, idParam } from '../server/list.ts'
import { type PageTeam, type TeamRequest, teamPath } from '../server/page.ts'
import { parseSearch } from '../server/search.ts'
import { TEXTS } from '../texts.ts'
import { SCHEDULED_STATUS, statusFilter } from './scheduled.ts'

/** Which emails a list has. By default it leaves out emails of broadcasts, which would hide all others. */
const KINDS = ['single', 'broadcasts', 'all'] as const

/** Query of links that include emails of broadcasts. */
export const ALL_EMAILS = { kind: 'all' } as const

/** Returns the URL of a team's emails, including those of broadcasts. More parameters can be appended. */
export const allEmails = (team: PageTeam): string =>
  `${teamPath(team, 'emails')}?${new URLSearchParams({ ...ALL_EMAILS })}`

/** The value for emails that failed or expired. Their status is `queued`. */
export const FAILED_STATUS = 'failed' as const

export const FAILED_INCLUDES = { [FAILED_STATUS]: 'Failed includes expired emails.' }

const STATUSES_SHOWN = [SCHEDULED_STATUS, ...EMAIL_LADDER, FAILED_STATUS] as const

/** Converts the value of a status chip to a filter. Queued emails exclude failed ones. */
function emailStatusFilter(word: (typeof STATUSES_SHOWN)[number] | undefined) {
  if (word === FAILED_STATUS) return { failed: true }
  return { ...statusFilter(word), ...(word === 'queued' ? { failed: false } : {}) }
}

export const filter = defineFilter(
  {
    q: search('Search', { placeholder: 'Recipient, name, subject or ID' }),
    kind: defineChoice('Kind of email', KINDS, {
      options: [
        { value: '', label: 'Single emails' },
        { value: 'broadcasts', label: 'Of broadcasts' },
        { value: 'all', label: 'All emails' },
      ],
    }),
    status: chips(STATUSES_SHOWN, { bounced: 'Bounced includes skipped emails.', ...FAILED_INCLUDES }),
  },
  {
    recipient: search('Recipient', { placeholder: 'someone@example.com' }),
    subject: search('Subject contains'),
    id: search('ID', { placeholder: 'Any ID or idempotency key' }),
    domain: search('From domain'),
    template: defineId('Template'),
    broadcast: defineId('Broadcast'),
    tag: search('Tag'),
    ...DAY_RANGE,
  },
)

const IN_BROADCAST = { single: false, broadcasts: true, all: undefined } as const

/** Parses the filter from a URL or a form. @throws RequestError bad_request. */
export function parseEmailFilter(query: URLSearchParams, zone: string): Omit<EmailFilter, 'team_id'> {
  const { q, kind, status, template, broadcast, ...asked } = filter.read(query, zone)
  const parsed = q === undefined ? {} : parseSearch(q)
  const twice = (['recipient', 'id', 'subject'] as const).find((name) => name in parsed && asked[name])
  if (twice !== undefined) throw invalidField('q', fill(TEXTS.otherInSearch, { thing: twice }))
  // A broadcast or an ID in the filter also finds emails of broadcasts.
  const isNamed = broadcast !== undefined || asked.id !== undefined || 'id' in parsed
  const in_broadcast = isNamed && kind === undefined ? undefined : IN_BROADCAST[kind ?? 'single']
  const which = in_broadcast === undefined ? {} : { in_broadcast }
  return {
    ...asked,
    ...parsed,
    ...which,
    ...emailStatusFilter(status),
    template_id: template,
    broadcast_id: broadcast,
  }
}

/** Returns the earlier of two optional times. */
export const earlier = (one: Date | undefined, other: Date | undefined): Date | undefined =>
  one && other ? new Date(Math.min(one.getTime(), other.getTime())) : (one ?? other)

export type TemplateNames = ReadonlyMap<string, string>

export async function namesOfTemplates({ team }: { team: { id: string } }, { database }: PageDeps) {
  const templates = await templatesOfTeam(database, team.id)
  return new Map(templates.map(({ id, name }) => [id, name]))
}

/** Names the template of an email, if it has one. */
export const templateName = ({ template_id: id }: { template_id: string | null }, names: TemplateNames) =>
  id === null ? undefined : (names.get(id) ?? 'deleted template')

/** Returns the broadcast in the filter as a choice of it. */
export async function nameOfBroadcast({ team, query }: TeamRequest, { database }: PageDeps) {
  const id = idParam(query, 'broadcast')
  const broadcast = id === undefined ? null : await broadcastById(database, team.id, id)
  return broadcast ? { broadcast: new Map([[broadcast.id, broadcast.name]]) } : {}
}

/** Returns the broadcast in a filter, or null. */
export const findBroadcast = ({ team_id, broadcast_id: id }: EmailFilter, { database }: PageDeps) =>
  team_id !== undefined && id !== undefined ? broadcastById(database, team_id, id) : null

/** Limits a search to the time of its broadcast. */
export function withinBroadcast<F extends EmailFilter>(search: F, broadcast: BroadcastRow | null): F {
  if (!broadcast) return search
  const { from, to } = emailTimes(broadcast)
  const first = Math.max(from.getTime(), search.from?.getTime() ?? 0)
  return { ...search, from: new Date(first), to: earlier(to, search.to) }
}

/** Returns the search of a request. It starts at the creation of the team. */
export const readSearch = ({ team, query, now, cookies }: TeamRequest) => ({
  ...parseEmailFilter(query, parseZone(cookies('zone'))),
  ...{ team_id: team.id, since: new Date(team.created_at), now },
})

/** Returns the URL of the list, or of a page below it, with this filter. */
export const listAddress = (
  { team, query }: Pick<TeamRequest, 'team' | 'query'>,
  ...rest: string[]
): string => addressWith({ path: teamPath(team, 'emails', ...rest), query }, {})
